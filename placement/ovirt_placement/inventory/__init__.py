"""What is known of the engine now: published by one service a machine, read by everyone else."""

from ovirt_placement.inventory.client.current import (
    Known,
    NoSnapshot,
    close,
    known,
    snapshot,
    using,
    wait_for_change,
)
from ovirt_placement.inventory.client.decision import Decision, decision, wait_until_shown
from ovirt_placement.inventory.on_demand.statistics import Measured
from ovirt_placement.inventory.published.protocol import NoService

__all__ = [
    "Decision",
    "Known",
    "Measured",
    "NoService",
    "NoSnapshot",
    "close",
    "decision",
    "known",
    "snapshot",
    "using",
    "wait_for_change",
    "wait_until_shown",
]
