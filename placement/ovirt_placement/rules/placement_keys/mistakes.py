"""What is wrong with the placement keys of a snapshot, and what would be after a change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from ovirt_placement.model import Cluster, PlacementKey, Snapshot
from ovirt_placement.model.placement_keys import NODE
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.hierarchy import NAME, MistakenKey, is_readable, property_keys
from ovirt_placement.rules.placement_keys.keys import Code, is_ratio, missing_node_keys, validate


class UnreadableProperty(Record, frozen=True):
    """A VM whose own property holds something else than keys: all of it is ignored."""

    vm: str
    text: str

    @property
    def codes(self) -> tuple[Code, ...]:
        return (Code.PROPERTY_UNREADABLE,)


class MissingNodeKeys(Record, frozen=True):
    """Names that other hosts of the cluster carry and this one lacks; there they count nothing."""

    host: str
    names: tuple[str, ...]

    @property
    def codes(self) -> tuple[Code, ...]:
        return (Code.NODE_KEY_SET_DIFFERS,)


Mistake = MistakenKey | UnreadableProperty | MissingNodeKeys


Refusal = MistakenKey | MissingNodeKeys


def find_mistakes(snapshot: Snapshot) -> tuple[Mistake, ...]:
    """All mistakes: of keys as they were written, of VMs' properties, of the hosts of a cluster."""
    from_properties = [key for vm in snapshot.vms for key in property_keys(vm)]
    keys = (*snapshot.placement_keys, *from_properties)
    carried = _host_names(snapshot.placement_keys)
    return (
        *(MistakenKey(key, codes) for key in keys if (codes := validate(key))),
        *(
            UnreadableProperty(vm.id, vm.custom_properties[NAME])
            for vm in snapshot.vms
            if not is_readable(vm.custom_properties.get(NAME, ""))
        ),
        *(
            MissingNodeKeys(host, names)
            for cluster in snapshot.clusters
            for host, names in _missing(snapshot, cluster, carried).items()
        ),
    )


def refusals(
    snapshot: Snapshot, put: Sequence[PlacementKey], removed: Sequence[PlacementKey]
) -> tuple[Refusal, ...]:
    """Why the keys of the snapshot may not be changed so: keys with mistakes, hosts that would lack some.

    A key of hosts exists on all of a cluster or on none. A host that lacks one already, since it joined
    later, may remain: `find_mistakes` reports it.
    """
    mistaken = (MistakenKey(key, codes) for key in put if (codes := validate(key)))
    return (*mistaken, *_newly_missing(snapshot, put, removed))


def _newly_missing(
    snapshot: Snapshot, put: Sequence[PlacementKey], removed: Sequence[PlacementKey]
) -> Iterator[MissingNodeKeys]:
    before = _host_names(snapshot.placement_keys)
    after = (before - _host_names(removed)) | _host_names(put)
    changed = {name for _, name in _host_names(chain(put, removed))}
    for cluster in snapshot.clusters:
        lacked, lacking = _missing(snapshot, cluster, before), _missing(snapshot, cluster, after)
        for host, names in lacking.items():
            if newly := tuple(name for name in names if name in changed and name not in lacked.get(host, ())):
                yield MissingNodeKeys(host, newly)


def _host_names(keys: Iterable[PlacementKey]) -> set[tuple[str, str]]:
    """What all hosts of a cluster must have or lack together: not the ratios, of which each has its own."""
    return {(key.resource, key.name) for key in keys if key.level == NODE and not is_ratio(key)}


def _missing(
    snapshot: Snapshot, cluster: Cluster, carried: Iterable[tuple[str, str]]
) -> dict[str, tuple[str, ...]]:
    """By host of a cluster the names that it lacks, where hosts carry these."""
    names: dict[str, list[str]] = {host.id: [] for host in snapshot.hosts_of_cluster.get(cluster.id, ())}
    for host, name in carried:
        if host in names:
            names[host].append(name)
    return missing_node_keys(names)
