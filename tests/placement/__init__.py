"""Tests of the library that the components share."""
