"""Affinity groups: between VMs, and between VMs and hosts."""
