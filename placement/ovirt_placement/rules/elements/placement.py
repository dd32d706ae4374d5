"""Which VM is where, as it is or after some migrations, and whether a running VM may be migrated at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from ovirt_placement.lookups.index import once_per_snapshot
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind


def destinations(snapshot: Snapshot, vm: str) -> tuple[str, ...]:
    """Hosts that a VM is to be found on: its target when it is on its way, else the host it runs on."""
    return snapshot.pending_hosts.get(vm) or _present(snapshot, vm)


def occupied(snapshot: Snapshot, vm: str) -> tuple[str, ...]:
    """Hosts that a VM holds: a migrating one holds both ends until it has left (docs/rules.md, F4)."""
    targets = snapshot.pending_hosts.get(vm)
    present = _present(snapshot, vm)
    return tuple(dict.fromkeys((*targets, *present))) if targets else present


def target_unknown(snapshot: Snapshot, vm: str) -> bool:
    """Whether a VM migrates to a host that nobody knows: the REST API does not show it."""
    return vm not in snapshot.pending_hosts and snapshot.vm_by_id[vm].status == "migrating"


@once_per_snapshot
def vms_coming_to(snapshot: Snapshot) -> dict[str, tuple[Vm, ...]]:
    """The VMs that are on their way to a host, by the host."""
    found: dict[str, tuple[Vm, ...]] = {}
    for name, hosts in snapshot.pending_hosts.items():
        for host in hosts if name in snapshot.vm_by_id else ():
            found[host] = (*found.get(host, ()), snapshot.vm_by_id[name])
    return found


def _present(snapshot: Snapshot, vm: str) -> tuple[str, ...]:
    known = snapshot.vm_by_id.get(vm)
    return (known.host,) if known is not None and known.host is not None else ()


class Placement:
    """What constraints are held against."""

    def runs_on(self, vm: str) -> str | None:
        """The host that a VM runs on now, wherever it is going."""
        raise NotImplementedError

    def destinations(self, vm: str) -> tuple[str, ...]:
        """Hosts that a VM is to be found on: its target when it is on its way, else where it runs."""
        raise NotImplementedError

    def occupied(self, vm: str) -> tuple[str, ...]:
        """Hosts that a VM holds: a migrating one holds both ends until it has left."""
        raise NotImplementedError

    def holding(self, hosts: frozenset[str], vms: Collection[str]) -> Iterator[str]:
        """The VMs that hold any of these hosts; all of `vms` that do are among them, and others may be."""
        return (vm for vm in vms if not hosts.isdisjoint(self.occupied(vm)))

    def any_between_hosts(self, vms: Collection[str]) -> bool:
        """Whether any of these VMs holds more than one host: it is on its way."""
        return any(len({*self.occupied(vm)}) > 1 for vm in vms)


class Arriving(Placement):
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
        yield from (vm for vm in self._placement.holding(hosts, vms) if vm not in self._vms)
        if not hosts.isdisjoint(self._there):
            yield from self._vms


class SnapshotPlacement(Placement):
    """Where the VMs of a snapshot are."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def runs_on(self, vm: str) -> str | None:
        known = self._snapshot.vm_by_id.get(vm)
        return None if known is None else known.host

    def destinations(self, vm: str) -> tuple[str, ...]:
        return destinations(self._snapshot, vm)

    def occupied(self, vm: str) -> tuple[str, ...]:
        return occupied(self._snapshot, vm)

    def holding(self, hosts: frozenset[str], vms: Collection[str]) -> Iterator[str]:
        """The VMs that are on any of these hosts or on their way there."""
        coming = vms_coming_to(self._snapshot)
        found = (vm for host in hosts for vm in self._snapshot.vms_of_host.get(host, ()))
        if coming:
            yield from {vm.id for vms in (found, *map(coming.get, hosts)) for vm in vms or ()}
        else:
            yield from (vm.id for vm in found)

    def any_between_hosts(self, vms: Collection[str]) -> bool:
        return super().any_between_hosts([vm for vm in self._snapshot.pending_hosts if vm in vms])


HOSTED_ENGINE: Final = ReasonKind("hosted_engine", "it is the hosted engine", veto=True)
NOT_MIGRATABLE: Final = ReasonKind(
    "not_migratable", "it may not be migrated automatically (pinned, or only its user may)", veto=True
)
HOST_STATUS: Final = ReasonKind("host_status", "its host is {status}", veto=True)
VM_STATUS: Final = ReasonKind("vm_status", "its status is {status}, not up", veto=True)

#: States of a host that VMs can leave by migration: one that is non_operational answers, and lacks a network
#: or a storage domain. Source: MigrateVmCommand.validate asks nothing of the source host, and the engine
#: itself migrates the VMs of a host that becomes non_operational.
LEAVABLE: Final = ("up", "preparing_for_maintenance", "non_operational")


def moved_by_engine(vm: Vm) -> bool:
    """Whether the engine itself migrates a VM off a host that is deactivated.

    Source: MaintenanceNumberOfVdssCommand, "The Hosted Engine VM is migrated by the HA agent".
    """
    return vm.hosted_engine and vm.status == "up"


def expected_by_engine(
    needed_mb: int, free_mb: Callable[[str], int], *choices: Collection[str]
) -> str | None:
    """Where a VM is expected that the engine itself migrates, which needs so much; None if nowhere.

    Which host the HA agent chooses is not known: that with the most free memory, of the first choice if
    possible.
    """
    for hosts in choices:
        best = max(hosts, key=lambda host: (free_mb(host), host), default=None)
        if best is not None and free_mb(best) >= needed_mb:
            return best
    return None


def why_immovable(snapshot: Snapshot, vm: Vm) -> Reason | None:
    """Why a running VM may not be migrated by the enforcer, whatever the target; None if it may."""
    host = snapshot.host_by_id.get(vm.host or "")
    if vm.hosted_engine:
        return Reason(HOSTED_ENGINE, vm=vm.id)
    if not vm.migratable:
        return Reason(NOT_MIGRATABLE, vm=vm.id)
    if host is None or host.status not in LEAVABLE:
        return Reason(HOST_STATUS, vm=vm.id, host=vm.host, status=host.status if host else "not known")
    if vm.status != "up" or vm.id in snapshot.pending_hosts:
        return Reason(VM_STATUS, vm=vm.id, status=vm.status)
    return None
