"""States from public reports, each with the answer that is right."""
