"""The gates that every migration passes: one file a gate, listed in `catalogue`, asked by `admission`."""
