"""Tests of operation."""
