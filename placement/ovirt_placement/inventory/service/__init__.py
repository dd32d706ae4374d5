"""The service that follows the engine, and the parts that it is made of."""
