"""Tests of the engine's own filters."""
