"""What the service publishes: the file that readers map, and the socket that wakes them."""
