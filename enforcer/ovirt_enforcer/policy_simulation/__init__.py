"""Lets all who migrate VMs by themselves act on a snapshot, to see whether they come to rest."""
