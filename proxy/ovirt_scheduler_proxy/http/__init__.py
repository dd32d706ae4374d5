"""HTTP as the engine speaks it, lean and bounded, on one event loop."""
