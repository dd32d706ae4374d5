"""The engine's default selector: ranks within each weight unit, times the unit's factor, highest sum wins.

Source: the engine's RankSelectorPolicyUnit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence


def best_hosts(
    hosts: Sequence[str],
    weights: Mapping[str | None, Mapping[str, int]],
    factors: Mapping[str, int],
) -> tuple[str, ...]:
    """Give the hosts with the highest sum of points, in the order they came in.

    `weights` holds weights by host by unit; a host without one has 0, the best. A unit gives a point for
    each other host with the same or a worse weight. A unit without a factor counts once; so does None, the
    unit of weights that came without a unit's name.
    """
    points = dict.fromkeys(hosts, 0)
    for unit, by_host in weights.items():
        factor = 1 if unit is None else factors.get(unit, 1)
        ordered = sorted(by_host.get(host, 0) for host in hosts)
        for host in hosts:
            better = bisect_left(ordered, by_host.get(host, 0))
            points[host] += factor * (len(hosts) - better - 1)
    most = max(points.values())
    return tuple(host for host in hosts if points[host] == most)
