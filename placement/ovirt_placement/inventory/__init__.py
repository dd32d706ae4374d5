"""What is known of the engine now: published by one service a machine, read by everyone else."""

from ovirt_placement.inventory.current import NoSnapshot, snapshot, wait_for_change

__all__ = ["NoSnapshot", "snapshot", "wait_for_change"]
