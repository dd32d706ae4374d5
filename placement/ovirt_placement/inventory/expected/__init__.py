"""Expected placements: what was decided a moment ago on this machine, and the engine does not show yet."""
