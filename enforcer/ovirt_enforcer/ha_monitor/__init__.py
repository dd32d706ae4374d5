"""Watches by itself what nobody asks for, and tells of it: whether HA reservations hold."""
