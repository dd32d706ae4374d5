"""Programs that people run: comparisons with the engine, benchmarks, endurance, faults, fuzzing."""
