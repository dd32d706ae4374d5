"""The components together, as processes of their own around a simulated engine."""
