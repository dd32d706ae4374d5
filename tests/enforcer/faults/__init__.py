"""Faults of engine, network, store, clock and processes, injected while a real enforcer repairs a cluster."""
