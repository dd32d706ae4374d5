"""Choosing where VMs are to end: each strategy, and what they share."""
