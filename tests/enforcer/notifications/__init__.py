"""Notifications: what is reported, to whom, and that nobody waits for it."""
