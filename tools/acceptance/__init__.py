"""An acceptance suite against any engine, by its address: see docs/acceptance.md."""
