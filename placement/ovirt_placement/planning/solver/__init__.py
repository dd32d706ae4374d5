"""Forms, bounds and nearby solutions of a problem; they know no rule."""
