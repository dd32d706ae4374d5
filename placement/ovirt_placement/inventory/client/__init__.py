"""What everybody calls to know the engine: what is published, else the engine itself."""
