"""`ovirt-placement doctor`."""
