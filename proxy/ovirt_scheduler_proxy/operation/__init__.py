"""What an administrator sees of the proxy: logs, records of decisions, metrics, and its state in systemd."""
