"""`ovirt-placement rules`, one file for each group of actions."""
