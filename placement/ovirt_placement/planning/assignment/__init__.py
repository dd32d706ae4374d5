"""Chooses where VMs are to end, by one of several strategies; in which order is for `ordering` to say."""
