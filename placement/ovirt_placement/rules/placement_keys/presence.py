"""Who is on a host, or on the way to it: what VMs take there, and where the keys that they bring count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ovirt_placement.model import FrozenKeys, Snapshot, Vm
from ovirt_placement.rules.index import once_per_part, once_per_snapshot
from ovirt_placement.rules.locations import destinations, occupied
from ovirt_placement.rules.placement_keys.columns import Bearers, Located, bearers
from ovirt_placement.rules.placement_keys.compile import compile_keys
from ovirt_placement.rules.placement_keys.exact import Written
from ovirt_placement.rules.placement_keys.hierarchy import keys_of
from ovirt_placement.rules.placement_keys.node_keys import FrozenSet
from ovirt_placement.rules.verdict import Struct


class Held(Struct, frozen=True):
    """What one VM takes of a host's memory."""

    host: str
    memory_mb: int
    #: Not there yet: nothing of the host's memory is used so far, only promised.
    arriving: bool


class Presence(Struct, frozen=True):
    """What the VMs of a snapshot take, by the place of the host, and where their keys count.

    A migrating VM holds memory and CPUs at both ends; its keys move to the target at once. Paused VMs
    count: they hold memory.
    """

    memory_mb: Sequence[int]
    vcpus: Sequence[int]
    #: By id, the place of each VM that stays where it is and brings what was recorded when it started.
    recorded_at: Mapping[str, int]
    #: The keys that all others bring: they have no record, or are on their way somewhere.
    others: Located


@once_per_snapshot
def host_places(snapshot: Snapshot) -> dict[str, int]:
    """The place of each host among all, by its id."""
    return {host.id: place for place, host in enumerate(snapshot.hosts)}


@once_per_snapshot
def presence(snapshot: Snapshot) -> Presence:
    places, recorded, on_their_way = host_places(snapshot), recorded_sets(snapshot), snapshot.pending_hosts
    memory, vcpus = [0] * len(places), [0] * len(places)
    recorded_at: dict[str, int] = {}
    others: list[Vm] = []
    for vm in snapshot.vms:
        if vm.id in on_their_way:
            others.append(vm)
            for one in held(snapshot, vm):
                if (place := places.get(one.host)) is not None:
                    memory[place] += one.memory_mb
                    vcpus[place] += vm.vcpus
        elif vm.host is not None and (place := places.get(vm.host)) is not None:
            memory[place] += vm.memory_mb
            vcpus[place] += vm.vcpus
            if vm.id in recorded:
                recorded_at[vm.id] = place
            else:
                others.append(vm)
    return Presence(memory, vcpus, recorded_at, _located(snapshot, others))


def held(snapshot: Snapshot, vm: Vm) -> Iterator[Held]:
    """The hosts whose memory a VM holds: where it runs, and where it is on its way to."""
    promised = _promised(snapshot)
    for host in occupied(snapshot, vm.id):
        arriving = host != vm.host
        promise = promised.get((vm.id, host)) if arriving else None
        yield Held(host, vm.memory_mb if promise is None else promise, arriving)


def brought(snapshot: Snapshot, vm: Vm) -> tuple[FrozenSet, tuple[int, ...]]:
    """The customer keys that a VM brings, and the places where they count.

    A running VM brings those recorded when it started, or its present ones if nobody recorded them. One
    that is just starting brings its present ones: a record would be of an earlier run.
    """
    recorded = recorded_sets(snapshot).get(vm.id) if vm.host is not None else None
    keys = present_set(snapshot, vm) if recorded is None else recorded
    places = host_places(snapshot)
    return keys, tuple(places[host] for host in destinations(snapshot, vm.id) if host in places)


def present_set(snapshot: Snapshot, vm: Vm) -> FrozenSet:
    """What a VM that starts now would bring."""
    compiled = compile_keys(keys_of(snapshot, vm)).customer
    return tuple((key.name, float(key.value)) for key in compiled.values())


@once_per_part(lambda snapshot: snapshot.frozen_keys)
def recorded_sets(records: tuple[FrozenKeys, ...]) -> dict[str, FrozenSet]:
    """The recorded keys by VM id."""
    return {record.vm: record.keys for record in records}


@once_per_part(lambda snapshot: snapshot.frozen_keys)
def recorded_keys(records: tuple[FrozenKeys, ...]) -> Bearers:
    """The VMs by the recorded keys that they bring."""
    return bearers((record.vm, record.keys) for record in records)


@once_per_snapshot
def _promised(snapshot: Snapshot) -> dict[tuple[str, str], int | None]:
    return {(entry.vm, entry.host): entry.memory_mb for entry in snapshot.pending}


def _located(snapshot: Snapshot, vms: Iterable[Vm]) -> Located:
    found: defaultdict[str, defaultdict[Written, list[int]]] = defaultdict(lambda: defaultdict(list))
    for vm in vms:
        keys, places = brought(snapshot, vm)
        for name, value in keys:
            found[name][value] += places
    return found
