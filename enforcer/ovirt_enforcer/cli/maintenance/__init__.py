"""`ovirt-enforcer maintenance`: rolling maintenance of hosts under every rule."""
