"""What lasts: the proxy called for long, and readers of what others write fed with what is spoilt."""
