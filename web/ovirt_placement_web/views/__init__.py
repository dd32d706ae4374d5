"""What an address shows, and the acts that its forms ask for."""
