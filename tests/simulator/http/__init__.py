"""The simulator's REST face, tested with the unmodified SDK and with plain HTTP against running servers."""
