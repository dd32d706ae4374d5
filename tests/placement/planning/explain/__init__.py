"""Tests of what is said to block a rule."""
