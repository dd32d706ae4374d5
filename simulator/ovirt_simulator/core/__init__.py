"""The state machine: hosts, VMs, migrations and events, advanced by seconds."""
