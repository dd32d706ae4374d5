"""Our copies of the engine's units against the engine's own classes, where a folder holds them."""
