"""What is solved by OR-Tools or counted out, whatever the rules: forms, bounds, and better ends nearby."""
