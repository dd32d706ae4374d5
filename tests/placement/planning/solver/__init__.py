"""Choosing where VMs are to end: each strategy, what they share, and what stands in the way."""
