"""Bursts of starts over HTTP against an engine with few request threads, and figures of what they meet."""
