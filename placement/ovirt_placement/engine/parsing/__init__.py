"""The engine's XML, one module an entity: bytes in, the model's records out."""
