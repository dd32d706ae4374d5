"""Tests of balancing load."""
