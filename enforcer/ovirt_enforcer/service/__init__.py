"""The daemon: when what is looked at, and what it reads."""
