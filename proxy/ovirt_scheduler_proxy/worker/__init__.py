"""What runs in the processes of plugins, with the standard library alone."""
