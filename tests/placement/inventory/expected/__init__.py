"""Tests of expected placements."""
