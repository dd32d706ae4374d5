"""Small problems, solved for good: all that legal sequences reach, with detours and whole groups."""
