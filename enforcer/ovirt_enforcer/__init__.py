"""Finds VMs that violate a rule, plans the fewest safe migrations, executes and verifies them."""
