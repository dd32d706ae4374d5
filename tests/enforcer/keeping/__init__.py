"""Tests of keeping."""
