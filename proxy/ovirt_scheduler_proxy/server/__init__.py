"""HTTP as the engine speaks it, lean and bounded: one thread for each connection."""
