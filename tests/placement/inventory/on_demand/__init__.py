"""Tests of what is read on demand."""
