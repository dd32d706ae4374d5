"""Watches without being asked, and reports, whether HA reservations are satisfied."""
