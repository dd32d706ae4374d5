"""Placement rules: what stands, how it stands, and what was changed; one file a question."""
