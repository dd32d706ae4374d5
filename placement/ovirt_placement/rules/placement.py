"""Which VM is where: of a snapshot as it is, or as it would be after some migrations."""

from __future__ import annotations

from typing import Protocol

from ovirt_placement.model import Snapshot
from ovirt_placement.rules import locations


class Placement(Protocol):
    """What constraints are held against."""

    def runs_on(self, vm: str) -> str | None:
        """The host that a VM runs on now, wherever it is going."""
        ...

    def destinations(self, vm: str) -> tuple[str, ...]:
        """Hosts that a VM is to be found on: its target when it is on its way, else where it runs."""
        ...

    def occupied(self, vm: str) -> tuple[str, ...]:
        """Hosts that a VM holds: a migrating one holds both ends until it has left."""
        ...


class Arriving:
    """A placement in which some VMs have come to a host already, from wherever they were."""

    def __init__(self, placement: Placement, vms: tuple[str, ...], host: str) -> None:
        self._placement = placement
        self._vms = frozenset(vms)
        self._there = (host,)

    def runs_on(self, vm: str) -> str | None:
        return self._there[0] if vm in self._vms else self._placement.runs_on(vm)

    def destinations(self, vm: str) -> tuple[str, ...]:
        return self._there if vm in self._vms else self._placement.destinations(vm)

    def occupied(self, vm: str) -> tuple[str, ...]:
        return self._there if vm in self._vms else self._placement.occupied(vm)


class SnapshotPlacement:
    """Where the VMs of a snapshot are."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def runs_on(self, vm: str) -> str | None:
        known = self._snapshot.vm_by_id.get(vm)
        return None if known is None else known.host

    def destinations(self, vm: str) -> tuple[str, ...]:
        return locations.destinations(self._snapshot, vm)

    def occupied(self, vm: str) -> tuple[str, ...]:
        return locations.occupied(self._snapshot, vm)
