"""Tests of the engine's client, against recorded and simulated answers."""
