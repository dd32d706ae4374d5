"""What all commands and long-running processes share; it knows nothing of placement, nor of the proxy."""
