"""`ovirt-placement groups`, one file an action."""
