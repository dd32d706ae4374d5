"""Tests of what runs in a worker process."""
