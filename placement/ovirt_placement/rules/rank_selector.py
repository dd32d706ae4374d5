"""Puts the weights of several units together as the engine's default selector does."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from ovirt_placement.rules.record import Record


class Scored(Record, frozen=True):
    """A host and the points that it has got; more is better."""

    host: str
    points: int


def order_hosts(
    hosts: Sequence[str],
    weights: Mapping[str | None, Mapping[str, int]],
    factors: Mapping[str, int],
) -> tuple[Scored, ...]:
    """Order hosts from best to worst.

    Each unit gives a host a point for every other host that it does not prefer to it, times the unit's
    factor (1 where it has none). A host that a unit does not mention has weight 0, the best. The engine
    leaves ties to chance; here the lower id comes first.
    """
    points = dict.fromkeys(hosts, 0)
    for unit, by_host in weights.items():
        ordered = sorted(by_host.get(host, 0) for host in points)
        factor = factors.get(unit, 1) if unit is not None else 1
        for host in points:
            better = bisect_left(ordered, by_host.get(host, 0))
            points[host] += factor * (len(ordered) - better - 1)
    return _sorted(Scored(host, points[host]) for host in points)


def _sorted(scored: Iterable[Scored]) -> tuple[Scored, ...]:
    return tuple(sorted(scored, key=lambda one: (-one.points, one.host)))
