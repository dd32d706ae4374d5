"""Balancing load as the engine does, and what every balance has in common."""
