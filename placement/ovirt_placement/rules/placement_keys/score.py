"""Steps 4 and 5: how near a host's keys come to a VM's, and what that is worth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from ovirt_placement.rules.placement_keys.compile import CompiledKey
from ovirt_placement.rules.placement_keys.exact import Ratio, total
from ovirt_placement.rules.placement_keys.node_keys import Instances, Values
from ovirt_placement.rules.verdict import Struct


class Match(Struct, frozen=True):
    """A name that the VM and the host both have: `count` times a value that is this near."""

    key: CompiledKey
    found: Fraction
    count: int
    proximity: Fraction

    @property
    def points(self) -> Fraction:
        """What all instances together add to the score."""
        return self.key.weight * self.proximity * self.count


class Score(Struct, frozen=True):
    """What a host is worth by one list of keys, unbounded; `matches` tells what it is made of."""

    total: Fraction
    keys: tuple[CompiledKey, ...]
    values: Values

    @property
    def matches(self) -> Iterator[Match]:
        """The names that both sides have, in the order of the VM's keys."""
        for key in self.keys:
            for found, count in self.values.get(key.name, ()):
                near = proximity(key.value.as_integer_ratio(), found)
                yield Match(key, Fraction(*found), count, Fraction(*near))


class Scoring:
    """Scores hosts by one VM's keys. What many hosts share is computed once."""

    def __init__(self, keys: Iterable[CompiledKey]) -> None:
        self._keys = tuple(keys)
        self._worth = tuple((key.name, _Worth(key)) for key in self._keys)

    def score(self, values: Values) -> Score:
        """Add up over every value of a host that has a name of the VM's: the weight times the proximity.

        A name that only one side has counts nothing; of several instances, each counts.
        """
        points = [worth[found] for name, worth in self._worth for found in values.get(name, ())]
        return Score(total(points), self._keys, values)


def proximity(one: Ratio, other: Ratio) -> Ratio:
    """How near two values are: 1 at equality, falling evenly to 0 at a difference of 1 and beyond."""
    (a, b), (c, d) = one, other
    gap, whole = abs(a * d - c * b), b * d
    return (whole - gap, whole) if gap < whole else (0, 1)


class _Worth(dict[Instances, Ratio]):
    """What instances of a value on a host are worth to a key of the VM, computed when first met."""

    def __init__(self, key: CompiledKey) -> None:
        super().__init__()
        self._value = key.value.as_integer_ratio()
        self._weight, self._unit = key.weight.as_integer_ratio()

    def __missing__(self, instances: Instances) -> Ratio:
        found, count = instances
        near, whole = proximity(self._value, found)
        worth = self[instances] = (self._weight * near * count, self._unit * whole)
        return worth
