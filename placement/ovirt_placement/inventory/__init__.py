"""What is known of the engine now: by one service a machine, which follows it for everyone else."""
