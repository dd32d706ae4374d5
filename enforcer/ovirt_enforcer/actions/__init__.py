"""What the enforcer has the engine do: it passes the gates, is written down, asked for and followed."""
