"""Follows the engine, publishes what it knows, and reads what is published."""
