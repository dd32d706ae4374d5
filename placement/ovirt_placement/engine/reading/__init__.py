"""What is read of an engine, one file a kind of question."""
