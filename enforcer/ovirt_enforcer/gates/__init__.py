"""The one place that every migration passes."""
