"""Tests of parsing."""
