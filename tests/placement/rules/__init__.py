"""Tests of the rules, against brute force where there is any."""
