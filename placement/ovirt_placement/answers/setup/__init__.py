"""How a policy comes to have our units: what the engine has, what it is to have, and the requests between."""
