"""Stores as former releases made them: one file a version, word for word, with something in it."""
