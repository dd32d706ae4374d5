"""What the state holds for each field that a search can name."""
