"""Tests of the enforcer: what it plans, what holds it back, and what it does to a simulated engine."""
