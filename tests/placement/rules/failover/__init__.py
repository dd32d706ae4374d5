"""Tests of what a failure of hosts leaves."""
