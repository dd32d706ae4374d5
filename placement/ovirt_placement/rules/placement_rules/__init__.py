"""Placement rules: what no affinity group of the engine can ask. One file for each kind."""
