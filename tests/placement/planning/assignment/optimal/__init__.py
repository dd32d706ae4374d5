"""Tests of the optimal strategy."""
