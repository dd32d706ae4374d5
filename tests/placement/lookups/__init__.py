"""Look-ups that are carried over from one snapshot to the next equal those of one decoded again."""
