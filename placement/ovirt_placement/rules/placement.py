"""Which VM is where: of a snapshot as it is, or as it would be after some migrations."""

from __future__ import annotations

from collections.abc import Collection, Iterator
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


class Indexed:
    """A placement that knows who is on a host without asking for each VM."""

    def holding(self, hosts: frozenset[str], vms: Collection[str]) -> Iterator[str]:
        """The VMs that hold any of these hosts; all of `vms` that do are among them, and others may be."""
        raise NotImplementedError


def holding(placement: Placement, hosts: frozenset[str], vms: Collection[str]) -> Iterator[str]:
    """The VMs that hold any of these hosts; all of `vms` that do are among them, and others may be."""
    if isinstance(placement, Indexed):
        yield from placement.holding(hosts, vms)
    else:
        yield from (vm for vm in vms if not hosts.isdisjoint(placement.occupied(vm)))


def any_between_hosts(placement: Placement, vms: Collection[str]) -> bool:
    """Whether any of these VMs holds more than one host: it is on its way."""
    if isinstance(placement, SnapshotPlacement):
        vms = placement.on_their_way(vms)
    return any(len({*placement.occupied(vm)}) > 1 for vm in vms)


class Arriving(Indexed):
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

    def holding(self, hosts: frozenset[str], vms: Collection[str]) -> Iterator[str]:
        yield from (vm for vm in holding(self._placement, hosts, vms) if vm not in self._vms)
        if not hosts.isdisjoint(self._there):
            yield from self._vms


class SnapshotPlacement(Indexed):
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

    def holding(self, hosts: frozenset[str], vms: Collection[str]) -> Iterator[str]:
        """The VMs that are on any of these hosts or on their way there."""
        coming = locations.vms_coming_to(self._snapshot)
        found = (vm for host in hosts for vm in self._snapshot.vms_of_host.get(host, ()))
        if coming:
            yield from {vm.id for vms in (found, *map(coming.get, hosts)) for vm in vms or ()}
        else:
            yield from (vm.id for vm in found)

    def on_their_way(self, vms: Collection[str]) -> Collection[str]:
        pending = self._snapshot.pending_hosts
        return tuple(vm for vm in pending if vm in vms)
