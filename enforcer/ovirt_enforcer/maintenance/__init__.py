"""Rolling maintenance: what is next for each host, and how it is done."""
