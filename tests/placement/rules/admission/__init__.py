"""Tests of HA reservation."""
