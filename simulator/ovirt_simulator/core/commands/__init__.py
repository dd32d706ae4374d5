"""What is asked of the engine, and what it does of itself: by the subject that changes."""
