"""What people read: escaped, in tables, on a screen, and said once."""
