"""A good end of a plan, quickly: goal by goal, each mended as cheaply as a short search finds."""
