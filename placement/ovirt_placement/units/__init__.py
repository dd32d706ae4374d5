"""What policy units share: they take the engine's question to a rule, and its answer back to either proxy."""
