"""What the enforcer writes down: its lease, intents, history, cycles and maintenance runs."""
