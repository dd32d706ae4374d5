"""What is changed in an engine, one file a kind of change."""
