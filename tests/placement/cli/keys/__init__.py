"""Tests of keys."""
