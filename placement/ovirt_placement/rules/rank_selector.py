"""Puts the weights of several units together as the engine's default selector does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from operator import add
from uuid import UUID

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
    factor (1 where it has none). A host that a unit does not mention has weight 0, the best. Of equals
    comes first what the engine comes upon first, in the table of its hosts; in the order given, where that
    leaves open which.

    Source: the engine's RankSelectorPolicyUnit, which sorts the entries of a HashMap.
    """
    found = as_the_engine_finds(hosts)
    points = [0] * len(found)
    for unit, by_host in weights.items():
        factor = factors.get(unit, 1) if unit is not None else 1
        points = list(map(add, points, points_of([by_host.get(host, 0) for host in found], factor)))
    return tuple(sorted(map(Scored, found, points), key=lambda one: -one.points))


def points_of(weights: Sequence[int], factor: int) -> Iterator[int]:
    """The points that a unit gives to hosts with these weights: one for every other host not better."""
    counts = Counter(weights)
    points, not_better = {}, -1
    for weight in sorted(counts, reverse=True):
        not_better += counts[weight]
        points[weight] = factor * not_better
    return map(points.__getitem__, weights)


def as_the_engine_finds(hosts: Sequence[str]) -> list[str]:
    """Order hosts by their place in a Java HashMap; what is no id of an engine stays where it is."""
    places = 16
    while len(hosts) > places * 3 // 4:
        places *= 2
    return sorted(hosts, key=lambda host: _hash(host) % places)


@lru_cache(maxsize=4096)
def _hash(host: str) -> int:
    """Source: java.util.UUID.hashCode and java.util.HashMap.hash."""
    try:
        upper, lower = divmod(UUID(host).int, 1 << 64)
    except ValueError:
        return 0
    folded = upper ^ lower
    code = (folded >> 32) ^ (folded & 0xFFFFFFFF)
    return code ^ (code >> 16)
