"""What is shown: the newest state of the engine, answers about it, plans and the past by the store."""
