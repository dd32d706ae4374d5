"""Placement rules: what no affinity group of the engine can ask. Kinds of one sort share a file."""
