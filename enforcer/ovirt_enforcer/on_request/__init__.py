"""What people ask for, by commands or the page: plans as of now, the way back, room, orders."""
