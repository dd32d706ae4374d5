"""A real enforcer, killed at every point between two effects on the outside world."""
