"""The engine's contract: what its four methods ask, what they must answer, and what a failing unit means."""
