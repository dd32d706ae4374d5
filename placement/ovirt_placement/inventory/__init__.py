"""What is known of the engine now: published by one service a machine, read by everyone else."""

from ovirt_placement.inventory.client.current import (
    Known,
    NoSnapshot,
    expect_of_accepted,
    expect_of_ranks,
    known,
    snapshot,
    wait_for_change,
)
from ovirt_placement.inventory.on_demand.statistics import Measured

__all__ = [
    "Known",
    "Measured",
    "NoSnapshot",
    "expect_of_accepted",
    "expect_of_ranks",
    "known",
    "snapshot",
    "wait_for_change",
]
