"""Tests against foreign software that the contract is made with."""
