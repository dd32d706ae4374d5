"""Which host the engine will choose, by what units found and by what is known of the policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import add, neg
from typing import NamedTuple

from ovirt_placement.inventory.expected.engines_weights import EnginesWeights
from ovirt_placement.inventory.expected.group_weights import group_points
from ovirt_placement.inventory.expected.traces import ONE_CALL_SECONDS, Trace
from ovirt_placement.model import Cluster, Snapshot, Vm
from ovirt_placement.rules.engines_weights import ENGINES_WEIGHTS
from ovirt_placement.rules.java.hash_map import put_all
from ovirt_placement.rules.rank_selector import as_the_engine_finds, points_of

#: By the names that a cluster's state has for the engine's own weights.
_IDS = {weight.name: weight.unit for weight in ENGINES_WEIGHTS}


def of_one_call(traces: Sequence[Trace]) -> tuple[Trace, ...]:
    """Its traces in the last call about a VM: of weights about the same hosts, else of filters."""
    last = traces[-1]
    found: dict[str, Trace] = {}
    for trace in reversed(traces):
        if last.at - trace.at > ONE_CALL_SECONDS or trace.unit in found:
            break
        if bool(trace.ranks) != bool(last.ranks) or (last.ranks and trace.hosts != last.hosts):
            break
        found[trace.unit] = trace
    return tuple(found.values())


class Foreseen(NamedTuple):
    """The host that the engine is expected to choose."""

    host: str
    #: Whether it can choose no other, whatever the weights say that are not known here.
    sure: bool


def expected_host(
    base: Snapshot,
    laid: Callable[[], Snapshot],
    vm: Vm,
    traces: Sequence[Trace],
    engines_weights: EnginesWeights,
) -> Foreseen | None:
    """The one host that the filters left, else the best by our weights and the engine's.

    `laid` gives the base with what is expected of other VMs: the engine knows that exactly.
    """
    hosts = _left(base, traces, engines_weights)
    if len(hosts) == 1:
        return Foreseen(hosts[0], sure=True)
    if not hosts or not traces[0].ranks:
        return None
    cluster = base.cluster_by_id[vm.cluster]
    found: dict[str, Sequence[int]] = {
        trace.unit: list(points_of(_weights(trace, hosts), trace.factor)) for trace in traces
    }
    ours = _summed(found, len(hosts))
    found |= engines_weights.points(base, vm, hosts)
    found |= group_points(base, laid, vm, hosts)
    place = _first_of_the_best(cluster, hosts, _summed(found, len(hosts)), found)
    others = sum(cluster.policy.values()) * (len(hosts) - 1)
    lead = ours[place] - max(ours[:place] + ours[place + 1 :])
    return Foreseen(hosts[place], sure=lead > others)


def _summed(points: Mapping[str, Sequence[int]], hosts: int) -> list[int]:
    sums = [0] * hosts
    for each in points.values():
        sums = list(map(add, sums, each))
    return sums


def _left(snapshot: Snapshot, traces: Sequence[Trace], engines_weights: EnginesWeights) -> tuple[str, ...]:
    """The hosts that all of the traces know, and the snapshot."""
    hosts, known = traces[0].hosts, snapshot.host_by_id
    if any(trace.hosts is not hosts for trace in traces):
        left = set(hosts).intersection(*(trace.hosts for trace in traces))
        hosts = tuple(host for host in hosts if host in left)
    if engines_weights.knows(snapshot, hosts) or all(map(known.__contains__, hosts)):
        return hosts
    return tuple(host for host in hosts if host in known)


def _weights(trace: Trace, hosts: tuple[str, ...]) -> Sequence[int]:
    if trace.hosts is hosts:
        return trace.numbers
    ranks = trace.by_host()
    return [ranks[host] for host in hosts]


def _first_of_the_best(
    cluster: Cluster, hosts: tuple[str, ...], points: Sequence[int], found: Mapping[str, Sequence[int]]
) -> int:
    """The place of the host that the engine finds first, of those with the most points."""
    most = max(points)
    if points.count(most) == 1:
        return points.index(most)
    units = _units(cluster, found)
    said = found.get(units[0]) if units else None
    first = dict(zip(hosts, map(neg, said), strict=True)) if said else dict.fromkeys(hosts, 0)
    places = {host: place for place, host in enumerate(hosts)}
    listed = (places[host] for host in as_the_engine_finds(hosts, first, units=len(units)))
    return next(place for place in listed if points[place] == most)


def _units(cluster: Cluster, found: Mapping[str, Sequence[int]]) -> list[str]:
    """The weights of the policy, in the order in which the engine comes upon them."""
    reported = cluster.scheduling_policy.unit_ids if cluster.scheduling_policy else {}
    name_by_id = {reported.get(name) or _IDS.get(name, name): name for name in {**found, **cluster.policy}}
    return [name_by_id[unit] for unit in put_all(name_by_id)]
