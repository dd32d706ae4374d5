"""Which host the engine will choose, by what units found and by what is known of the policy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import add

from ovirt_placement.inventory.expected.engines_weights import EnginesWeights
from ovirt_placement.inventory.expected.traces import ONE_CALL_SECONDS, Trace
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.rank_selector import as_the_engine_finds, points_of


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


def expected_host(
    snapshot: Snapshot, vm: Vm, traces: Sequence[Trace], engines_weights: EnginesWeights
) -> str | None:
    """The one host that the filters left, else the best by our weights and the engine's, as far as known."""
    hosts = _left(snapshot, traces, engines_weights)
    if len(hosts) == 1:
        return hosts[0]
    if not hosts or not traces[0].ranks:
        return None
    points: Sequence[int] = engines_weights.points(snapshot, vm, hosts)
    for trace in traces:
        weights = _weights(trace, hosts)
        if weights.count(weights[0]) < len(weights):
            points = list(map(add, points, points_of(weights, trace.factor)))
    preferred = snapshot.cluster_by_id[vm.cluster].policy.get("preferred_hosts_weight")
    if preferred and vm.migratable and vm.pinned_hosts:
        # Source: PreferredHostsWeightPolicyUnit.
        others = [int(host not in vm.pinned_hosts) for host in hosts]
        points = list(map(add, points, points_of(others, preferred)))
    return _first_of_the_best(hosts, points)


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


def _first_of_the_best(hosts: tuple[str, ...], points: Sequence[int]) -> str:
    """Of the hosts with the most points the one that the engine finds first."""
    most = max(points)
    place = points.index(most)
    if points.count(most) == 1:
        return hosts[place]
    return hosts[next(place for place in _as_found(hosts) if points[place] == most)]


@lru_cache(maxsize=64)
def _as_found(hosts: tuple[str, ...]) -> tuple[int, ...]:
    """The places of the hosts in the order in which the engine finds them."""
    places = {host: place for place, host in enumerate(hosts)}
    return tuple(places[host] for host in as_the_engine_finds(hosts))
