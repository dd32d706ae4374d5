"""The health of a placement: clusters, the enforcer, the proxy of this machine, and what happened lately."""
