"""What policy units share: how they answer either proxy, and the snapshot that they decide on."""
