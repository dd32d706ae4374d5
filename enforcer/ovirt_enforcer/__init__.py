"""Finds VMs that break a rule, plans the fewest safe migrations, carries them out, and proves the result."""
