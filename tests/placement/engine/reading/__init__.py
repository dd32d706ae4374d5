"""Tests of what is read of an engine."""
