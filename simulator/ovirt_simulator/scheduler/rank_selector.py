"""The engine's default selector: ranks within each weight unit, times the unit's factor, highest sum wins.

Source: the engine's RankSelectorPolicyUnit, whose tables are Java HashMaps: of equals, the first in the table
wins.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .java import HashMap, as_int, guid_hash


class Record(NamedTuple):
    """A weight that a unit gives to a host; None stands for the unit of weights that came without one."""

    unit: str | None
    host: str
    weight: int


def best_host(hosts: Sequence[str], records: Iterable[Record], factors: Mapping[str, int]) -> str | None:
    """Give the host with the highest sum of points; None if no unit says anything.

    Weights of a unit for the same host add up; a host without any has 0, the best. A unit gives a point for
    each other host with the same or a worse weight; one without a factor counts once. Where ids are no UUIDs,
    which no engine has, the first of equals is the first of `hosts`.
    """
    points = HashMap[int]()
    units = _by_unit(records)
    for unit in units:
        weights = _weights(hosts, units[unit])
        ordered = sorted(weights, key=lambda host: weights[host])
        worst = sorted(weights[host] for host in ordered)
        factor = 1 if unit is None else factors.get(unit, 1)
        for host in ordered:
            rank = len(ordered) - 1 - bisect_left(worst, weights[host])
            points.merge(host, as_int(points.get(host, 0) + factor * rank))
    found = [host for host in points if host is not None]
    if any(guid_hash(host) is None for host in found):
        found.sort(key=lambda host: hosts.index(host) if host in hosts else len(hosts))
    return max(found, key=lambda host: points[host], default=None)


def _by_unit(records: Iterable[Record]) -> HashMap[list[Record]]:
    units = HashMap[list[Record]]()
    for record in records:
        if record.unit not in units:
            units.put(record.unit, [])
        units[record.unit].append(record)
    return units


def _weights(hosts: Sequence[str], records: Iterable[Record]) -> HashMap[int]:
    """Add up a unit's weights by host, and give those that it leaves out the best."""
    weights = HashMap[int]()
    for record in records:
        weights.merge(record.host, as_int(weights.get(record.host, 0) + record.weight))
    for host in hosts:
        if host not in weights:
            weights.put(host, 0)
    return weights
