"""Judges a change of placement keys before it is made: what may not be set is refused, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model.key_levels import NODE
from ovirt_placement.rules.placement_keys.compile import MistakenKey
from ovirt_placement.rules.placement_keys.keys import missing_node_keys, validate
from ovirt_placement.rules.placement_keys.mistakes import MissingNodeKeys

Refusal = MistakenKey | MissingNodeKeys


def refusals(
    snapshot: Snapshot, put: Sequence[PlacementKey], removed: Sequence[PlacementKey]
) -> tuple[Refusal, ...]:
    """Why the keys of the snapshot may not be changed so: keys with mistakes, hosts that would lack some.

    A key of hosts exists on all of a cluster or on none. A host that lacks one already, since it joined
    later, may go on so: `find_mistakes` tells of it.
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
        hosts = [host.id for host in snapshot.hosts_of_cluster.get(cluster.id, ())]
        lacked, lacking = _missing(hosts, before), _missing(hosts, after)
        for host, names in lacking.items():
            if newly := tuple(name for name in names if name in changed and name not in lacked.get(host, ())):
                yield MissingNodeKeys(host, newly)


def _host_names(keys: Iterable[PlacementKey]) -> set[tuple[str, str]]:
    return {(key.resource, key.name) for key in keys if key.level == NODE}


def _missing(hosts: Iterable[str], carried: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    names: dict[str, list[str]] = {host: [] for host in hosts}
    for host, name in carried:
        if host in names:
            names[host].append(name)
    return missing_node_keys(names)
