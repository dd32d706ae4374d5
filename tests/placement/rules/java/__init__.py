"""Java's numbers, ids and tables."""
