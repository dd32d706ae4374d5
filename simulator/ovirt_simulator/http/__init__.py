"""The REST face of the state machine: XML shapes, status codes, faults, tokens, search and follow."""

#: This many requests are answered at once; a start or a migration that waits for the scheduler holds one.
THREADS = 20
