"""The forms of constraints as each way of computing needs them: counts, bits, and a model for CP-SAT."""
