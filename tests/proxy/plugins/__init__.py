"""Tests of plugin folders."""
