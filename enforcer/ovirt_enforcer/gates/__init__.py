"""The gates that every migration passes: listed, and asked in order, in `admission`."""
