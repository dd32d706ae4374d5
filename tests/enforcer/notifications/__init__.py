"""Notifications: what is told, to whom, and that nobody waits for it."""
