"""Tests of the simulated engine's state machine."""
