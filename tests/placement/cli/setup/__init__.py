"""Tests of setup."""
