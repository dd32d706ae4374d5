"""How often memory and CPUs of each host may be handed out: by its own word, the policy's, the cluster's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from fractions import Fraction

from msgspec.structs import replace

from ovirt_placement.lookups.index import once_per_part, once_whatever_is_pending
from ovirt_placement.model import Cluster, Host, PlacementKey, Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.exact import ZERO, number
from ovirt_placement.rules.placement_keys.keys import CPU_RATIO, RAM_RATIO, ignored_because, is_ratio
from ovirt_placement.rules.placement_keys.presence import host_places
from ovirt_placement.rules.placement_keys.settings import KeySettings


class Source(StrEnum):
    """Whose word a ratio is; the first of these that says something counts."""

    HOST = "host"
    POLICY = "policy"
    CLUSTER = "cluster"


class Contention(Record, frozen=True):
    """How often memory and CPUs may be handed out, and who says so."""

    memory: Fraction
    cpu: Fraction
    memory_source: Source
    cpu_source: Source


@once_whatever_is_pending
def contention_of_hosts(snapshot: Snapshot, settings: KeySettings) -> Sequence[Contention]:
    """The ratios of all hosts, each host at its place; most hosts share those of their cluster."""
    usual = {cluster.id: _usual(cluster, settings) for cluster in snapshot.clusters}
    own = _own_ratios(snapshot)
    return [
        _with_own(usual[host.cluster], own[host.id]) if host.id in own else usual[host.cluster]
        for host in snapshot.hosts
    ]


def contention_of_host(snapshot: Snapshot, host: Host, settings: KeySettings) -> Contention:
    return contention_of_hosts(snapshot, settings)[host_places(snapshot)[host.id]]


def _usual(cluster: Cluster, settings: KeySettings) -> Contention:
    """What counts on hosts that say nothing themselves."""
    return Contention(
        settings.memory_ratio or Fraction(cluster.memory_overcommit_percent) / 100,
        settings.cpu_ratio or Fraction(cluster.cpu_overcommit_percent) / 100,
        Source.POLICY if settings.memory_ratio else Source.CLUSTER,
        Source.POLICY if settings.cpu_ratio else Source.CLUSTER,
    )


def _with_own(usual: Contention, own: Mapping[str, Fraction]) -> Contention:
    found = usual
    if RAM_RATIO in own:
        found = replace(found, memory=own[RAM_RATIO], memory_source=Source.HOST)
    if CPU_RATIO in own:
        found = replace(found, cpu=own[CPU_RATIO], cpu_source=Source.HOST)
    return found


@once_per_part(lambda snapshot: snapshot.placement_keys)
def _own_ratios(keys: tuple[PlacementKey, ...]) -> Mapping[str, Mapping[str, Fraction]]:
    """By the id of each host that has any, its ratios by name; those with mistakes are left out."""
    found: defaultdict[str, dict[str, Fraction]] = defaultdict(dict)
    for key in keys:
        if is_ratio(key) and not ignored_because(key):
            found[key.resource][key.name] = number(key.value) or ZERO
    return dict(found)
