"""Tests of migrating."""
