"""Placement keys: what is set, what is wrong with it, and how it places a VM; one file a question."""
