"""Tests of the model and its files."""
