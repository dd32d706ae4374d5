"""The only code that talks to an engine."""
