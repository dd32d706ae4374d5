"""Tests of the inventory: what is published, how soon, and what readers make of it."""
