"""What the enforcer reports to administrators without being asked: which kinds, to whom, in which words."""
