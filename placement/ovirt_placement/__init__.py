"""What the components share: the model, the rules, the engine's client, the inventory and the store."""
