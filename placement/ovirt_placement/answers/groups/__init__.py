"""Affinity groups: how they stand, what speaks against a change of one, and what VMs lost."""
