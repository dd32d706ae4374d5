"""Tests of the simulated engine's scheduler."""
