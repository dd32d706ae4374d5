"""A good end of a plan, quickly: goal by goal, each repaired as cheaply as a short search finds."""
