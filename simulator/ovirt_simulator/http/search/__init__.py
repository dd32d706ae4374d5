"""The search of list requests: its grammar, what it may ask about, and what it finds."""
