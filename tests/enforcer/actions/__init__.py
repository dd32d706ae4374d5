"""Tests of what the enforcer has the engine do."""
