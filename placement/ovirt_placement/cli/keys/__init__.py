"""`ovirt-placement keys`, one file an action."""
