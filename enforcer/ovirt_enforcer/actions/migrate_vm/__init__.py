"""Carries out what the gates admit, and proves the result."""
