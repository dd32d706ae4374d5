"""What must survive: intents and placement keys, in a database."""
