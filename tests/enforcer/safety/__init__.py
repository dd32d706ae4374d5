"""Random clusters in trouble: whatever happens, the enforcer breaks nothing that held."""
