"""The watch of HA reservations: pure parts, and the daemon alone against a simulated engine."""
