"""A whole oVirt engine on localhost: its state machine, its scheduler and its REST API."""
