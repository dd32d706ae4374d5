"""Tests of placement keys, against the same written down a second time."""
