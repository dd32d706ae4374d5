"""The way to an engine: the SDK's connection, and what can go wrong on it."""
