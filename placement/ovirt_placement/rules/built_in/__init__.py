"""What the engine itself asks of a host before any unit of ours."""
