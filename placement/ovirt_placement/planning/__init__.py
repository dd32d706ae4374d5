"""From violated rules to the fewest legal migrations: pure, deterministic, certified by the rules."""
