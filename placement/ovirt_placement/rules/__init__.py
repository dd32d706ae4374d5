"""The rules: pure functions of a snapshot and a request, without clock, network, logging or randomness."""
