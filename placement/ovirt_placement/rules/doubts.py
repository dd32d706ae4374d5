"""What is not known yet, and what is not believed: until then no verdict counts that hangs on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from operator import is_
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.lookups import once_per_snapshot
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import host_name, vm_name
from ovirt_placement.model.snapshot import grouped
from ovirt_placement.rules.elements.placement import World, moved_by_engine, target_unknown
from ovirt_placement.rules.elements.resources import required_mb
from ovirt_placement.rules.elements.verdict import unread
from ovirt_placement.rules.placement_rules.in_force import not_known_yet


def doubt(snapshot: Snapshot, cluster: str) -> str:
    """Why no verdict on a cluster counts now, nor anything is planned there, in words; empty if all is known.

    What is not known refuses nothing, and licenses nothing: no start is refused for it, no reservation is
    called safe or lost, and no VM is moved.
    """
    reasons = (uncounted(snapshot, cluster), *unread(snapshot), *not_known_yet(snapshot, cluster))
    return next(filter(None, reasons), "")


def held(snapshot: Snapshot, cluster: str) -> dict[str, str]:
    """All VMs of a cluster with the doubt by which they stay where they are; none without one."""
    why = doubt(snapshot, cluster)
    return {vm.id: why for vm in snapshot.vms if vm.cluster == cluster} if why else {}


_MOST_NAMED = 5
#: An engine counts a VM that has arrived, and no longer one that has left, within some 21 s; and its hosts
#: are read every 15.
COUNTED_SECONDS = 45.0


class Believed(NamedTuple):
    """What was believed of a host, and of what that was concluded."""

    reported: Host
    percent: int
    vms: Sequence[Vm]
    host: Host
    #: When each of the VMs was first seen there, in seconds; None until the engine has counted them once.
    seen: Mapping[str, float] | None


def believed(snapshot: Snapshot, known: dict[str, Believed] | None = None, now: float = 0.0) -> Snapshot:
    """No host with more memory to hand out than the VMs there leave; one that reported more is marked.

    For some 14 s after its start the engine reports each host as if it were empty, until it counts its VMs
    again. What it reserves, which the API does not show, comes on top: the memory may still be less. Nor is
    a VM that has arrived counted for some 14 s, once it is pending no more: where all others are, it is
    deducted here, and the host is not marked.

    `known` is what was believed of each host, by its id: what has not changed since is not added up again,
    and VMs that came lately are distinguished from others. `now` is in seconds, of the clock by which it was
    filled.
    """
    percent = {cluster.id: cluster.memory_overcommit_percent for cluster in snapshot.clusters}
    known = {} if known is None else known
    there = snapshot.vms_of_host
    coming = grouped((vm.migrating_to, vm) for vm in snapshot.vms if vm.migrating_to not in (None, vm.host))
    hosts = tuple(
        _believed_of(
            host,
            percent.get(host.cluster, 100),
            (*there.get(host.id, ()), *coming.get(host.id, ())),
            known,
            now,
        )
        for host in snapshot.hosts
    )
    if all(map(is_, hosts, snapshot.hosts)):
        return snapshot
    return replace(snapshot, hosts=hosts)


def _believed_of(host: Host, percent: int, vms: Sequence[Vm], known: dict[str, Believed], now: float) -> Host:
    last = known.get(host.id)
    if last is None or last.reported is not host or last.percent != percent or last.vms != vms:
        last = known[host.id] = _believe(host, percent, vms, None if last is None else last.seen, now)
    return last.host


def _believe(
    host: Host, percent: int, vms: Sequence[Vm], seen: Mapping[str, float] | None, now: float
) -> Believed:
    """A VM that is being launched, or is on its way there, is pending: that is deducted, if all others are.

    Doubtful is only more than the memory of VMs leaves: what they take besides is an estimate where devices
    were not read. A host that was never reached has no memory yet.
    """
    there = [vm for vm in vms if vm.host == host.id]
    taking = [vm for vm in there if vm.status != "wait_for_launch"]
    pending = [vm for vm in vms if vm.host != host.id or vm.status == "wait_for_launch"]
    whole_mb = host.memory_mb * percent // 100
    since = None if seen is None else {vm.id: seen.get(vm.id, now) for vm in there}

    def fits(some: Iterable[Vm]) -> bool:
        return host.free_mb <= max(0, whole_mb - sum(vm.memory_mb for vm in (*some, *pending)))

    if not vms or not host.memory_mb or fits(taking):
        return Believed(host, percent, vms, host, since or dict.fromkeys((vm.id for vm in there), -inf))
    most_mb = max(0, whole_mb - sum(map(required_mb, vms)))
    if since is not None and fits(vm for vm in taking if now - since[vm.id] >= COUNTED_SECONDS):
        free_mb = host.free_mb
        for vm in sorted(taking, key=lambda vm: since[vm.id], reverse=True):
            if free_mb > most_mb:
                free_mb -= required_mb(vm)
        return Believed(host, percent, vms, replace(host, free_mb=max(0, free_mb)), since)
    return Believed(host, percent, vms, replace(host, free_mb=most_mb, memory_uncounted=True), since)


def with_room_to_come(snapshot: Snapshot, left: Iterable[tuple[str, str]]) -> Snapshot:
    """The snapshot with the room of VMs that have left hosts lately, which the engine may count there yet."""
    room = Counter[str]()
    for vm, host in left:
        if vm in snapshot.vm_by_id:
            room[host] += required_mb(snapshot.vm_by_id[vm])
    hosts = (
        replace(host, free_mb=host.free_mb + room[host.id]) if room[host.id] else host
        for host in snapshot.hosts
    )
    return believed(replace(snapshot, hosts=tuple(hosts)))


def uncounted(snapshot: Snapshot, cluster: str) -> str:
    """Why the memory of a cluster's hosts proves nothing now, in words; empty if it does."""
    hosts = [host.name for host in snapshot.hosts_of_cluster.get(cluster, ()) if host.memory_uncounted]
    if not hosts:
        return ""
    return f"the engine has not counted the memory of all VMs on {_few(hosts)} yet"


class UnderWay(NamedTuple):
    """What is on its way in a cluster: a failure may meet it at either end."""

    #: Once all has arrived of which it is known where; None if nothing is on its way.
    end: Snapshot | None
    #: What differs then, in words.
    arrival: str
    #: The VMs that leave for hosts which are not known, in words; empty if there are none.
    leaving: str


@once_per_snapshot
def under_way(snapshot: Snapshot, cluster: str) -> UnderWay:
    """What migrates, starts, or is to leave a host that is prepared for maintenance.

    Once a snapshot, so that what is found of its end is found once, too.
    """
    emptied = {one.id for one in snapshot.hosts if one.status == "preparing_for_maintenance"}
    going: dict[str, str] = {}
    leaving = []
    for vm in (one for one in snapshot.vms if one.cluster == cluster):
        *_, target = (vm.host, *snapshot.pending_hosts.get(vm.id, ()))
        stays = target == vm.host and not vm.migratable and not moved_by_engine(vm)
        if target_unknown(snapshot, vm.id) or (target in emptied and not stays):
            leaving.append(vm.id)
        elif target != vm.host and target in snapshot.host_by_id:
            going[vm.id] = target
    return UnderWay(
        _arrived(snapshot, going) if going else None,
        _few([f"{vm_name(vm, snapshot)} is on {host_name(host, snapshot)}" for vm, host in going.items()]),
        _few([vm_name(vm, snapshot) for vm in leaving]),
    )


def _arrived(snapshot: Snapshot, going: Mapping[str, str]) -> Snapshot:
    """The state once VMs are there; what is but meant, or expected, has taken no memory there yet."""
    known = snapshot.vm_by_id
    meant = {
        vm: host
        for vm, host in going.items()
        if vm in snapshot.unconfirmed or known[vm].status not in ("migrating", "down")
    }
    taken = {vm: host for vm, host in going.items() if vm not in meant}
    moved = {vm: host for vm, host in meant.items() if known[vm].host is not None}
    begun = {vm: host for vm, host in meant.items() if vm not in moved}
    return World(snapshot).arrived(taken, source_freed=True).migrated(moved).running(begun).snapshot


def _few(words: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = len(words) - _MOST_NAMED
    return ", ".join(words[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
