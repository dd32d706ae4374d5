"""Tests of rolling maintenance."""
