"""Tests of what the pages for administrators say."""
