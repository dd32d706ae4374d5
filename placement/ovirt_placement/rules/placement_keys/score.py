"""Steps 4 and 5: how near a host's keys come to a VM's, and what that is worth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm

from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.capacity import Shares
from ovirt_placement.rules.placement_keys.hierarchy import CompiledKey
from ovirt_placement.rules.placement_keys.host_keys import Column, Columns, Instances
from ovirt_placement.rules.placement_keys.keys import SPECIAL_NAMES, Ratio


class Match(Record, frozen=True):
    """A name that the VM and the host both have: `count` times a value that is this near."""

    key: CompiledKey
    found: Fraction
    count: int
    proximity: Fraction

    @property
    def points(self) -> Fraction:
        """What all instances together add to the score."""
        return self.key.weight * self.proximity * self.count


class Score(Record, frozen=True):
    """What one host is worth by one list of keys, unbounded."""

    total: Fraction
    keys: tuple[CompiledKey, ...]
    #: What the host has under the names of the keys.
    values: Mapping[str, Sequence[Instances]]

    @property
    def matches(self) -> Iterator[Match]:
        """What it is made of: the names that both sides have, in the order of the VM's keys."""
        for key in self.keys:
            for found, count in self.values.get(key.name, ()):
                near = proximity(key.value.as_integer_ratio(), found)
                yield Match(key, Fraction(*found), count, Fraction(*near))


class Scores(Record, frozen=True):
    """What all hosts are worth by one list of keys: by place, exact, whole numbers of a part of a point."""

    keys: tuple[CompiledKey, ...]
    columns: Columns
    #: By place; none where no special key counts.
    shares: Sequence[Shares]
    #: This many parts are a point; whole values, weights and thresholds are whole numbers of parts.
    unit: int
    #: Rounded up where special keys count: what was above a whole number of parts still is.
    parts: Sequence[int]
    #: By how much they are rounded up, in parts of a part as fine as the shares of that host.
    excess: Sequence[int]

    def at(self, place: int) -> Score:
        """One host's score, and what it is made of."""
        values = {key.name: self.columns.instances(key.name, place) for key in self.keys}
        whole, excess = 1, 0
        if self.excess:
            whole, excess = self.shares[place].whole, self.excess[place]
            values |= {name: ((found, 1),) for name, found in self.shares[place].ratios.items()}
        return Score(Fraction(self.parts[place] * whole - excess, self.unit * whole), self.keys, values)


def score(
    keys: Iterable[CompiledKey],
    columns: Columns,
    hosts: int,
    *,
    shares: Sequence[Shares] = (),
    compared_with: Iterable[Fraction] = (),
) -> Scores:
    """Add up over every value of a host that has a name of the VM's: the weight times the proximity.

    A name that only one side has counts nothing; of several instances, each counts. What the scores will be
    `compared_with` is a whole number of their parts, too.
    """
    every = tuple(keys)
    matched = [(key, found) for key in every if (found := columns[key.name])]
    special = [key for key in every if key.name in SPECIAL_NAMES] if shares else []
    unit = lcm(
        *(_unit(key, lcm(*(whole for _, whole in column))) for key, column in matched),
        *(_unit(key, 1) for key in special),
        *(number.denominator for number in compared_with),
    )
    parts, excess = _sums(matched, unit, hosts), list[int]()
    if special:
        fine = _in_shares(special, shares, unit)
        parts = [part - -more // one.whole for part, more, one in zip(parts, fine, shares, strict=True)]
        excess = [-more % one.whole for more, one in zip(fine, shares, strict=True)]
    return Scores(every, columns, shares, unit, parts, excess)


def _unit(key: CompiledKey, unit: int) -> int:
    """What part of a point is fine enough for a key that meets values of this unit."""
    return key.weight.denominator * lcm(key.value.denominator, unit)


def _sums(matched: Iterable[tuple[CompiledKey, Column]], unit: int, hosts: int) -> list[int]:
    """What the keys are worth on each host, in parts of a point."""
    parts = [0] * hosts
    for key, column in matched:
        value, whole = key.value.as_integer_ratio()
        points = key.weight.numerator * unit // key.weight.denominator
        for (found, fine), places in column.items():
            near = whole * fine - abs(value * fine - found * whole)
            if near > 0:
                worth = points * near // (whole * fine)
                for place in places:
                    parts[place] += worth
    return parts


def _in_shares(keys: Iterable[CompiledKey], shares: Sequence[Shares], unit: int) -> list[int]:
    """What special keys are worth on each host, in parts as fine as its shares."""
    found = [0] * len(shares)
    for key in keys:
        value, whole = key.value.as_integer_ratio()
        points = key.weight.numerator * (unit // (key.weight.denominator * whole))
        for place, (fine, parts) in enumerate(shares):
            share = parts.get(key.name)
            if share is not None and (near := whole * fine - abs(value * fine - share * whole)) > 0:
                found[place] += points * near
    return found


def proximity(one: Ratio, other: Ratio) -> Ratio:
    """How near two values are: 1 at equality, falling evenly to 0 at a difference of 1 and beyond."""
    (a, b), (c, d) = one, other
    gap, whole = abs(a * d - c * b), b * d
    return (whole - gap, whole) if gap < whole else (0, 1)
