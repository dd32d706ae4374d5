"""Tests of plans of rolling maintenance."""
