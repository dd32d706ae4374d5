"""What the scheduler proxy answered, from its record, and what the engine's events say of it."""
