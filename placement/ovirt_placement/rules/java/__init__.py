"""What the engine's answers owe to Java: its numbers, the order of its ids, and that of its tables."""
