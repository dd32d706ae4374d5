"""How the store's tables came to be: one file a version, which says the same for ever."""
