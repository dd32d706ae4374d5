"""Tests of workers, from inside."""
