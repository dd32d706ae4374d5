"""What is read only where an enabled rule or a key asks for it, since it costs the engine more."""
