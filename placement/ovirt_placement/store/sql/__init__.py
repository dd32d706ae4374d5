"""The database itself: its schema, its connections, and what every part of the store does by them."""
