"""Tests of the connection."""
