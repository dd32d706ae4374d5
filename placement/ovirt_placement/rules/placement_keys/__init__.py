"""Placement keys: numbers on resources and hosts that draw a VM to some hosts and keep it off others."""
