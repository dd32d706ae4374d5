"""A plugin host for the oVirt engine's external scheduler: knows the contract, knows nothing of placement."""
