"""One VM and all rules in force: which hosts may take it, and in which order."""
