"""Tests of simulating."""
