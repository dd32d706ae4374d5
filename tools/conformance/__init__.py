"""The engine's own verdicts and hand-checked arithmetic, to hold the rules against: `make conformance`."""
