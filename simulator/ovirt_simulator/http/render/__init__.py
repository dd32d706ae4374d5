"""Each type of entity as the engine shows it: names, order and nesting of its elements, and nothing else."""
