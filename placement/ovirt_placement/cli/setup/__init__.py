"""`ovirt-placement setup`."""
