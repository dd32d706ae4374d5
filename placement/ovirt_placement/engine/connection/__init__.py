"""The way to an engine, and what can go wrong on it."""
