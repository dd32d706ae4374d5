"""Two real enforcers on one store, of which the one that leads is stopped at any point and woken late."""
