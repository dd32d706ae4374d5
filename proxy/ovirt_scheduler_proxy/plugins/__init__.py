"""Plugin folders: what they hold, what is wrong with it, and what changes."""
