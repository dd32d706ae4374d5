"""Tests of what is changed in an engine."""
