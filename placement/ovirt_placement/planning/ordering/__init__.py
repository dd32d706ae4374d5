"""Orders the moves of a choice: every state on the way is legal, and what may run at once does."""
