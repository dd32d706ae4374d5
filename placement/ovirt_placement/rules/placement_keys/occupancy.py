"""What all VMs together take of each host, and the keys that they bring to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from ovirt_placement.lookups.differences import exchanged_ids
from ovirt_placement.lookups.index import Earlier, continued
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.columns import Located
from ovirt_placement.rules.placement_keys.exact import Written
from ovirt_placement.rules.placement_keys.presence import (
    Presence,
    bringing_present_keys,
    host_places,
    presences,
    recorded_sets,
)

#: Parts of a snapshot that the present keys of a VM depend on, besides the VM itself.
_PRESENT_SETS_DEPEND_ON = ("placement_keys", "clusters", "vnic_profiles")

_Keys: TypeAlias = defaultdict[str, defaultdict[Written, list[int]]]


class Occupancy(Record, frozen=True):
    """By the place of each host, memory and CPUs that VMs have or are promised there; by name, their keys."""

    memory_mb: Sequence[int]
    vcpus: Sequence[int]
    keys: Located


@continued
def occupancy(snapshot: Snapshot, earlier: Earlier | None) -> Occupancy:
    """Add up the presences of all VMs; where a snapshot is known that came before, of those that differ."""
    differing = None if earlier is None else _differing(earlier, snapshot)
    if earlier is None or differing is None:
        nothing = [0] * len(snapshot.hosts)
        return _exchanged(Occupancy(nothing, nothing, {}), (), presences(snapshot, snapshot.vms))
    gone, come = (presences(one, _listed(one, differing)) for one in (earlier.snapshot, snapshot))
    return _exchanged(occupancy(earlier.snapshot), tuple(gone), tuple(come))


def _differing(earlier: Earlier, snapshot: Snapshot) -> set[str] | None:
    """The VMs that may count otherwise than before; None if it is quicker to look at all of them.

    What stayed as it was is the same object. A VM for which no record holds brings what its keys are now,
    which the keys of all that it depends on may change.
    """
    before = earlier.snapshot
    if host_places(before) != host_places(snapshot):
        return None
    found = earlier.differing(snapshot) | exchanged_ids(recorded_sets(before), recorded_sets(snapshot))
    if any(getattr(before, part) is not getattr(snapshot, part) for part in _PRESENT_SETS_DEPEND_ON):
        found |= bringing_present_keys(snapshot)
    return found if 2 * len(found) < len(snapshot.vms) else None


def _listed(snapshot: Snapshot, vms: Iterable[str]) -> Iterator[Vm]:
    return (snapshot.vm_by_id[vm] for vm in vms if vm in snapshot.vm_by_id)


def _no_keys() -> _Keys:
    return defaultdict(lambda: defaultdict(list))


def _exchanged(before: Occupancy, gone: Iterable[Presence], come: Iterable[Presence]) -> Occupancy:
    """Take some presences away and add others."""
    memory, vcpus = list(before.memory_mb), list(before.vcpus)
    taken, brought = _no_keys(), _no_keys()
    for sign, several, keys in ((-1, gone, taken), (1, come, brought)):
        for one in several:
            for held in one.held:
                memory[held.place] += sign * held.memory_mb
                vcpus[held.place] += sign * one.vcpus
            for name, value in one.keys:
                keys[name][value] += one.places
    names = dict(before.keys)
    for name in taken.keys() | brought.keys():
        if places := _exchanged_places(names.pop(name, {}), taken.get(name, {}), brought.get(name, {})):
            names[name] = places
    return Occupancy(memory, vcpus, names)


def _exchanged_places(
    before: Mapping[Written, Sequence[int]],
    gone: Mapping[Written, Iterable[int]],
    come: Mapping[Written, Iterable[int]],
) -> Mapping[Written, Sequence[int]]:
    """The places of one name's values."""
    after = dict(before)
    for value, places in gone.items():
        left = list(after[value])
        for place in places:
            left.remove(place)
        after[value] = left
    for value, places in come.items():
        after[value] = [*after.get(value, ()), *places]
    return {value: places for value, places in after.items() if places}
