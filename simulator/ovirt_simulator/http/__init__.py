"""The REST face of the state machine: XML shapes, status codes, faults, tokens, search and follow."""
