"""What is looked up in snapshots once, and carried over to the next (docs/developers/lookups.md)."""
