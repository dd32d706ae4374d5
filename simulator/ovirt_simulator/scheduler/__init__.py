"""The engine's scheduler: built-in filters, external units through the proxy, rank selection."""
