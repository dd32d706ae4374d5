"""XML-RPC: reads what the engine's Apache client sends and writes what it understands."""
