"""What of the engine's answers follows from Java: how its ids compare, its tables, and its numbers."""
