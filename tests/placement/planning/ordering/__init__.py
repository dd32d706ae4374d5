"""Tests of the order of migrations."""
