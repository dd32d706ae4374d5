"""Tests of affinity."""
