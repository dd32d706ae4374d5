"""Keeps what VMs are to be remembered by: the keys that they started with, and their sticky copies."""
