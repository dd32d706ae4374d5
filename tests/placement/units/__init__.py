"""Tests of what units share."""
