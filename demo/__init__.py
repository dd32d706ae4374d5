"""The whole way on one machine: a simulated engine, its proxy, its inventory and its enforcer, at work."""
