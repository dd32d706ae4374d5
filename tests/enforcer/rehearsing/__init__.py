"""Tests of rehearsing."""
