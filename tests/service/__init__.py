"""Tests of what processes share."""
