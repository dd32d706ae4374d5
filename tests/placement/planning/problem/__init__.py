"""Posing the problem of a cluster, and keeping account of it as VMs move."""
