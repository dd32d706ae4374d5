"""What was decided and what came of it, as an administrator asks for it."""
