"""Clients that nobody here wrote, and their own tests and examples, against a simulated engine."""
