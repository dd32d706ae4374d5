"""What is to be read besides the topology, which costs the engine more: only what somebody asks for."""

from __future__ import annotations

from dataclasses import dataclass

from ovirt_placement.engine.reading.detail import NO_DETAILS, Detail
from ovirt_placement.inventory.on_demand.searches import NO_SEARCHES, Wanted
from ovirt_placement.inventory.on_demand.statistics import NO_STATISTICS, Needed


@dataclass(frozen=True)
class Needs:
    """Statistics that enabled rules ask for, details of VMs that keys refer to, searches for members."""

    statistics: Needed = NO_STATISTICS
    details: Detail = NO_DETAILS
    searches: Wanted = NO_SEARCHES


NOTHING = Needs()
