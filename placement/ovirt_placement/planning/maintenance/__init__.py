"""Rolling maintenance: the rounds in which hosts are emptied and taken out, under every rule."""
