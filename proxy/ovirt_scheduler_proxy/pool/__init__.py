"""The proxy's side of worker processes: starting, lending, watching and ending them."""
