"""Where one VM counts: the hosts that it takes something of, and those that it brings its keys to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ovirt_placement.lookups.index import once_per_part, once_whatever_is_pending
from ovirt_placement.model import FrozenKeys, Snapshot, Vm
from ovirt_placement.model.record import Record
from ovirt_placement.rules.elements.placement import destinations, occupied
from ovirt_placement.rules.placement_keys.hierarchy import compile_keys, keys_of
from ovirt_placement.rules.placement_keys.host_keys import FrozenSet


class Held(Record, frozen=True):
    """What a VM takes of the memory of a host, which is its place among all hosts."""

    place: int
    memory_mb: int
    #: Not there yet: nothing of the host's memory is used so far, only promised.
    arriving: bool = False


class Presence(Record, frozen=True):
    """What a VM takes of hosts, and the keys that it brings.

    A migrating VM holds memory and CPUs at both ends; its keys move to the target at once. Paused VMs
    count: they hold memory.
    """

    vcpus: int
    held: tuple[Held, ...]
    keys: FrozenSet
    #: Where the keys count.
    places: tuple[int, ...]


@once_whatever_is_pending
def host_places(snapshot: Snapshot) -> dict[str, int]:
    """The place of each host among all, by its id."""
    return {host.id: place for place, host in enumerate(snapshot.hosts)}


def presences(snapshot: Snapshot, vms: Iterable[Vm]) -> Iterator[Presence]:
    """Where these VMs of the snapshot count; nothing of those that are nowhere.

    A running VM brings the keys that were recorded when it started, or its present ones if nobody recorded
    them. One that is just starting brings its present ones: a record would be of an earlier run.
    """
    places, recorded, on_their_way = host_places(snapshot), recorded_sets(snapshot), snapshot.pending_hosts
    for vm in vms:
        if vm.id in on_their_way:
            held = tuple(_held(snapshot, vm))
            counted = tuple(places[host] for host in destinations(snapshot, vm.id) if host in places)
        elif vm.host in places:
            counted = (places[vm.host],)
            held = (Held(places[vm.host], vm.memory_mb),)
        else:
            continue
        keys = recorded.get(vm.id) if vm.host is not None else None
        yield Presence(vm.vcpus, held, present_set(snapshot, vm) if keys is None else keys, counted)


def bringing_present_keys(snapshot: Snapshot) -> set[str]:
    """The VMs that would bring their present keys, wherever they count: no record holds for them."""
    vms = snapshot.vm_by_id
    starting = {vm for vm in snapshot.pending_hosts if vm in vms and vms[vm].host is None}
    return starting | (vms.keys() - recorded_sets(snapshot).keys())


def present_set(snapshot: Snapshot, vm: Vm) -> FrozenSet:
    """What a VM that starts now would bring."""
    compiled = compile_keys(keys_of(snapshot, vm)).customer
    return tuple((key.name, float(key.value)) for key in compiled.values())


@once_per_part(lambda snapshot: snapshot.frozen_keys)
def recorded_sets(records: tuple[FrozenKeys, ...]) -> dict[str, FrozenSet]:
    """The recorded keys by VM id."""
    return {record.vm: record.keys for record in records}


def _held(snapshot: Snapshot, vm: Vm) -> Iterator[Held]:
    """What a VM holds that is on its way: all of its memory where it runs, and elsewhere what is promised."""
    places = host_places(snapshot)
    promised = {entry.host: entry.memory_mb for entry in snapshot.pending if entry.vm == vm.id}
    for host in occupied(snapshot, vm.id):
        if host in places:
            arriving = host != vm.host
            promise = promised.get(host) if arriving else None
            yield Held(places[host], vm.memory_mb if promise is None else promise, arriving)
