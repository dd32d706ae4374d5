"""The recipes of `docs/recipes.md`, carried out."""
