"""The command `ovirt-placement`: parses and prints. What it prints is found out in `answers`."""
