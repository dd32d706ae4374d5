"""Steps 4 and 5: how near a host's keys come to a VM's, and what that is worth."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from ovirt_placement.rules.placement_keys.compile import CompiledKey
from ovirt_placement.rules.placement_keys.exact import ZERO, Written, number, total
from ovirt_placement.rules.placement_keys.node_keys import Values
from ovirt_placement.rules.verdict import Struct

_NO_VALUES: dict[Written, int] = {}


class Match(Struct, frozen=True):
    """A name that the VM and the host both have: `count` times this value, together worth `points`."""

    key: CompiledKey
    found: Fraction
    count: int
    proximity: Fraction
    points: Fraction


class Score(Struct, frozen=True):
    total: Fraction
    matches: tuple[Match, ...]


def proximity(one: Fraction, other: Fraction) -> Fraction:
    """How near two values are: 1 at equality, falling evenly to 0 at a difference of 1 and beyond."""
    a, b = one.as_integer_ratio()
    c, d = other.as_integer_ratio()
    gap, whole = abs(a * d - c * b), b * d
    return Fraction(whole - gap, whole) if gap < whole else ZERO


class Scoring:
    """Scores hosts by one VM's keys. Values that many hosts share are compared once."""

    def __init__(self, keys: Iterable[CompiledKey]) -> None:
        self._keys = [(key, dict[tuple[Written, int], Match]()) for key in keys]

    def score(self, values: Values) -> Score:
        """Add up over every value of a host that has a name of the VM's: the weight times the proximity.

        A name that only one side has counts nothing; of several instances, each counts.
        """
        matches = []
        for key, known in self._keys:
            for instances in values.get(key.name, _NO_VALUES).items():
                match = known.get(instances)
                if match is None:
                    match = known[instances] = _match(key, *instances)
                matches.append(match)
        return Score(total([match.points for match in matches]), tuple(matches))


def _match(key: CompiledKey, written: Written, count: int) -> Match:
    found = number(written) or ZERO
    near = proximity(key.value, found)
    return Match(key, found, count, near, key.weight * near * count)
