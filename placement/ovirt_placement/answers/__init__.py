"""Answers to what administrators ask: data in, data out. Commands print them; pages may render them."""
