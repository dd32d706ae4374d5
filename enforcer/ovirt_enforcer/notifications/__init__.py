"""What the enforcer tells administrators of its own accord: which kinds, to whom, in which words."""
