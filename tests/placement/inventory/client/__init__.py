"""Tests of what readers call."""
