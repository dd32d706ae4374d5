"""Whether each highly available VM could restart, whichever hosts fail."""
