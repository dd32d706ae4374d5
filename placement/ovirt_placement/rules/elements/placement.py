"""Which VM is where, as it is or after some migrations, and whether a running VM may be migrated at all.

A state becomes another one when VMs migrate or start, and when hosts fail: the one account of that. Filters
and constraints are asked about these states: so they judge what is planned as they will when it comes to it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from msgspec.structs import replace

from ovirt_placement.lookups import share
from ovirt_placement.model import Host, Pending, Snapshot, Vm
from ovirt_placement.model.snapshot import grouped
from ovirt_placement.rules.elements.resources import promised_mb, vms_coming_to, with_arrived, with_left
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
    """Whether a VM migrates to a host that is not known: the REST API does not show it."""
    return vm not in snapshot.pending_hosts and snapshot.vm_by_id[vm].status == "migrating"


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
        there, coming = self._snapshot.vms_of_host, vms_coming_to(self._snapshot)
        yield from {vm.id for found in (there, coming) for host in hosts for vm in found.get(host, ())}

    def any_between_hosts(self, vms: Collection[str]) -> bool:
        return super().any_between_hosts([vm for vm in self._snapshot.pending_hosts if vm in vms])


HOSTED_ENGINE: Final = ReasonKind("hosted_engine", "it is the hosted engine", veto=True)
NOT_MIGRATABLE: Final = ReasonKind(
    "not_migratable", "it may not be migrated automatically (pinned, or only its user may)", veto=True
)
HOST_STATUS: Final = ReasonKind("host_status", "its host has status {status}", veto=True)
VM_STATUS: Final = ReasonKind("vm_status", "its status is {status}, not up", veto=True)

#: States of a host that VMs can leave by migration: one that is non_operational answers, and lacks a network
#: or a storage domain. Source: MigrateVmCommand.validate asks nothing of the source host, and the engine
#: itself migrates the VMs of a host that becomes non_operational.
LEAVABLE: Final = ("up", "preparing_for_maintenance", "non_operational")


def off_gathering(place_of: Mapping[str, str | None]) -> tuple[str, ...]:
    """The VMs off the place that most share; of places with as many, the first by name gathers them."""
    crowds = Counter(place for place in place_of.values() if place is not None)
    gathering = min(crowds, key=lambda place: (-crowds[place], place), default=None)
    return tuple(vm for vm, place in place_of.items() if place is None or place != gathering)


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


@dataclass(frozen=True, slots=True)
class Load:
    """How busy hosts are once VMs have moved: what was measured, with what they bear more since."""

    #: Percent of all CPUs, by host; None where it is not known.
    measured: Mapping[str, float | None]
    #: Percent of one CPU, by host; exact, so that it comes back to 0.
    more: Mapping[str, Fraction]

    def moved(self, targets: Iterable[tuple[Vm, str]]) -> Load:
        """Once VMs have moved, each to its host."""
        more = defaultdict(Fraction, self.more)
        for vm, target in targets:
            load = Fraction(vm.usage_cpu_percent or 0) * vm.vcpus
            more[vm.host or ""] -= load
            more[target] += load
        return Load(self.measured, more)

    def used_percent(self, host: Host) -> float | None:
        """Percent of all CPUs of a host that are in use now."""
        measured = self.measured[host.id]
        if measured is None:
            return None
        now = Fraction(measured) + self.more.get(host.id, Fraction(0)) / (host.threads or host.cores)
        return float(min(max(now, Fraction(0)), Fraction(100)))


@dataclass(frozen=True, slots=True)
class World:
    """A state; each method returns the world after something has happened.

    Statistics of hosts stay as they were measured, as an engine's do for a while; with `load` they follow.
    """

    snapshot: Snapshot
    load: Load | None = None

    @classmethod
    def with_load(cls, snapshot: Snapshot) -> World:
        """One in which hosts are as busy as their VMs make them."""
        return cls(snapshot, Load({host.id: host.cpu_percent for host in snapshot.hosts}, {}))

    def moved(self, vms: Iterable[str], target: str) -> World:
        """Running VMs have migrated to a host."""
        return self.migrated(dict.fromkeys(vms, target))

    def migrated(self, targets: Mapping[str, str]) -> World:
        """Running VMs have migrated, each to its host."""
        return self.migrated_in_turn(targets.items())

    def migrated_in_turn(self, steps: Iterable[tuple[str, str]]) -> World:
        """Running VMs have migrated one after the other, some perhaps more than once: each with its host."""
        after: dict[str, Vm] = {}
        moved: list[tuple[Vm, str]] = []
        hosts = dict(self.snapshot.host_by_id)
        for name, target in steps:
            vm = after.get(name) or self.snapshot.vm_by_id[name]
            moved.append((vm, target))
            after[name] = replace(vm, host=target)
            if vm.host is not None and vm.host in hosts:
                hosts[vm.host] = with_left(hosts[vm.host], vm)
            if target in hosts:
                hosts[target] = with_arrived(hosts[target], vm)
        load = None if self.load is None else self.load.moved(moved)
        if load is not None:
            for name in hosts.keys() & {one for vm, target in moved for one in (vm.host, target)}:
                hosts[name] = replace(hosts[name], cpu_percent=load.used_percent(hosts[name]))
        return self._after(after, hosts.values(), load=load)

    def begun(self, vms: Iterable[str], target: str) -> World:
        """Migrations of running VMs have begun: they take their room on the target, and keep that at home."""
        begun = [self.snapshot.vm_by_id[vm] for vm in vms]
        pending = (Pending(vm=vm.id, host=target, memory_mb=vm.memory_mb) for vm in begun)
        return self._after({}, self._with_more(target, begun), pending=(*self.snapshot.pending, *pending))

    def arrived(self, going: Mapping[str, str], *, source_freed: bool) -> World:
        """VMs that were on their way, by VM and host, are there; their room there was handed out before."""
        known = self.snapshot.vm_by_id
        left = grouped(
            (known[vm].host, known[vm])
            for vm, host in going.items()
            if source_freed and known[vm].host != host  # handed over already, it is not up there yet
        )
        return self._after(
            {vm: replace(known[vm], host=host, status="up", migrating_to=None) for vm, host in going.items()},
            [with_left(host, *left[host.id]) if host.id in left else host for host in self.snapshot.hosts],
            pending=tuple(entry for entry in self.snapshot.pending if entry.vm not in going),
        )

    def starting(self, vm: str, host: str) -> World:
        """The engine has chosen a host for a VM: its memory is handed out, and taken to be used as before."""
        found = self.snapshot.vm_by_id[vm]
        pending = (*self.snapshot.pending, Pending(vm=vm, host=host))
        return self._after({}, self._with_more(host, [found]), pending=pending)

    def running(self, homes: Mapping[str, str]) -> World:
        """VMs that were down run, each on its host."""
        coming = {vm: self.snapshot.vm_by_id[vm] for vm in homes}
        there = grouped((host, coming[vm]) for vm, host in homes.items())
        return self._after(
            {vm: replace(coming[vm], host=host, status="up", crashed=False) for vm, host in homes.items()},
            [with_arrived(one, *there[one.id]) if one.id in there else one for one in self.snapshot.hosts],
        )

    def come_to(self, vms: Iterable[str], host: str) -> World:
        """VMs are on a host, those that ran elsewhere and those that were down."""
        known = self.snapshot.vm_by_id
        moving = [vm for vm in vms if known[vm].host not in (None, host)]
        moved = self.moved(moving, host) if moving else self
        return moved.running({vm: host for vm in vms if known[vm].host is None})

    def failed(self, hosts: Set[str]) -> World:
        """Hosts answer no more, and their VMs are down. Migrations from and to them are over."""
        now = self.snapshot
        lost = frozenset(vm.id for vm in now.vms if vm.host in hosts)
        back = given_back(now, lost)
        after = {
            vm.id: replace(vm, host=None, status="down", migrating_to=None, crashed=True)
            if vm.host in hosts
            else replace(vm, status="up", migrating_to=None)
            for vm in now.vms
            if vm.host in hosts or vm.migrating_to in hosts
        }
        standing = (
            replace(one, status="non_responsive")
            if one.id in hosts
            else replace(one, free_mb=one.free_mb + back[one.id])
            if one.id in back
            else one
            for one in now.hosts
        )
        pending = (one for one in now.pending if one.vm not in lost and one.host not in hosts)
        return self._after(after, standing, pending=tuple(pending))

    def deactivated(self, hosts: Set[str]) -> World:
        """Hosts were deactivated: in maintenance once nothing runs there or is on its way there."""
        busy = {vm.host for vm in self.snapshot.vms} | {
            host for places in self.snapshot.pending_hosts.values() for host in places
        }
        idle = hosts - busy
        return self._standing("maintenance", idle)._standing("preparing_for_maintenance", hosts - idle)

    def activated(self, hosts: Set[str]) -> World:
        """Hosts are up again: what they can hand out is what they could before."""
        return self._standing("up", hosts)

    def _standing(self, status: str, hosts: Set[str]) -> World:
        changed = (replace(one, status=status) if one.id in hosts else one for one in self.snapshot.hosts)
        return self._after({}, changed)

    def _with_more(self, target: str, vms: Iterable[Vm]) -> list[Host]:
        return [with_arrived(host, *vms) if host.id == target else host for host in self.snapshot.hosts]

    def _after(
        self,
        changed: Mapping[str, Vm],
        hosts: Iterable[Host],
        *,
        pending: tuple[Pending, ...] | None = None,
        load: Load | None = None,
    ) -> World:
        before = self.snapshot
        after = replace(
            before,
            vms=tuple(changed.get(vm.id, vm) for vm in before.vms) if changed else before.vms,
            hosts=tuple(hosts),
            pending=before.pending if pending is None else pending,
        )
        share(after, before)
        return World(after, self.load if load is None else load)


def given_back(snapshot: Snapshot, lost: Iterable[str]) -> Mapping[str, int]:
    """Memory by host, in MiB, that the engine has promised to VMs which will not arrive.

    It has to those that it shows as migrating: what is but planned, or expected, took nothing yet.
    """
    promised = {(entry.vm, entry.host): entry for entry in snapshot.pending}
    back: Counter[str] = Counter()
    for vm in (snapshot.vm_by_id[vm_id] for vm_id in lost):
        for host in snapshot.pending_hosts.get(vm.id, ()) if vm.status == "migrating" else ():
            back[host] += promised_mb(vm, promised.get((vm.id, host)))
    return back
