"""Steps 4 and 5: how near a host's keys come to a VM's, and what that is worth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm

from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.capacity import NO_SHARES, Shares
from ovirt_placement.rules.placement_keys.hierarchy import CompiledKey
from ovirt_placement.rules.placement_keys.host_keys import Column, Instances
from ovirt_placement.rules.placement_keys.keys import Ratio


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
    """What one host is worth by one list of keys, unbounded; `matches` lists its parts."""

    total: Fraction
    keys: tuple[CompiledKey, ...]
    #: What the host has under the names of the keys.
    values: Mapping[str, Sequence[Instances]]

    @property
    def matches(self) -> Iterator[Match]:
        """The names that both sides have, in the order of the VM's keys."""
        for key in self.keys:
            for found, count in self.values.get(key.name, ()):
                near = proximity(key.value.as_integer_ratio(), found)
                yield Match(key, Fraction(*found), count, Fraction(*near))


class Scores(Record, frozen=True):
    """What all hosts are worth by one list of keys: by place, exact, whole numbers of a part of a point."""

    keys: tuple[CompiledKey, ...]
    columns: Mapping[str, Column]
    shares: Shares
    #: This many parts are a point; whole values, weights and thresholds are whole numbers of parts.
    unit: int
    #: Rounded up where special keys count: what was above a whole number of parts still is.
    parts: Sequence[int]
    #: By how much they are rounded up, in parts of a part as fine as the shares of that host.
    excess: Sequence[int]

    def at(self, place: int) -> Score:
        """One host's score, and what it is made of."""
        whole, excess = (self.shares.wholes[place], self.excess[place]) if self.excess else (1, 0)
        values = {name: column.by_place.get(place, ()) for name, column in self.columns.items()}
        values |= {name: ((found, 1),) for name, found in self.shares.at(place)}
        return Score(Fraction(self.parts[place] * whole - excess, self.unit * whole), self.keys, values)


def score(
    keys: Iterable[CompiledKey],
    columns: Mapping[str, Column | None],
    hosts: int,
    *,
    shares: Shares = NO_SHARES,
    compared_with: Iterable[Fraction] = (),
) -> Scores:
    """Add up over every value of a host that has a name of the VM's: the weight times the proximity.

    A name that only one side has counts nothing; of several instances, each counts. What the scores will be
    `compared_with` is a whole number of their parts, too.
    """
    every = tuple(keys)
    matched = [(key, found) for key in every if (found := columns[key.name]) is not None]
    special = [key for key in every if key.name in shares.parts]
    unit = lcm(
        *(_unit(key, column.unit) for key, column in matched),
        *(_unit(key, 1) for key in special),
        *(number.denominator for number in compared_with),
    )
    parts = _sums(matched, unit, hosts)
    excess: list[int] = []
    if special:
        fine = _in_shares(special, shares, unit)
        parts = [part - -more // whole for part, more, whole in zip(parts, fine, shares.wholes, strict=True)]
        excess = [-more % whole for more, whole in zip(fine, shares.wholes, strict=True)]
    return Scores(every, {key.name: column for key, column in matched}, shares, unit, parts, excess)


def _unit(key: CompiledKey, unit: int) -> int:
    """What part of a point is fine enough for a key that meets values of this unit."""
    return key.weight.denominator * lcm(key.value.denominator, unit)


def _sums(matched: Iterable[tuple[CompiledKey, Column]], unit: int, hosts: int) -> list[int]:
    """What the keys are worth on each host, in parts of a point."""
    parts = [0] * hosts
    for key, column in matched:
        for worth, places in zip(_worths(key, column, unit), column.places, strict=True):
            if worth:
                for place in places:
                    parts[place] += worth
    return parts


def _worths(key: CompiledKey, column: Column, unit: int) -> list[int]:
    """What one instance of each value of a column is worth."""
    value, whole = key.value.as_integer_ratio()
    fine = lcm(whole, column.unit)
    wanted, step = value * (fine // whole), fine // column.unit
    points = key.weight.numerator * (unit // (key.weight.denominator * fine))
    nearness = (fine - abs(wanted - found * step) for found in column.values)
    return [points * near if near > 0 else 0 for near in nearness]


def _in_shares(keys: Iterable[CompiledKey], shares: Shares, unit: int) -> list[int]:
    """What special keys are worth on each host, in parts as fine as its shares."""
    found = [0] * len(shares.wholes)
    for key in keys:
        value, whole = key.value.as_integer_ratio()
        points = key.weight.numerator * (unit // (key.weight.denominator * whole))
        for place, (share, fine) in enumerate(zip(shares.parts[key.name], shares.wholes, strict=True)):
            if share is not None and (near := whole * fine - abs(value * fine - share * whole)) > 0:
                found[place] += points * near
    return found


def proximity(one: Ratio, other: Ratio) -> Ratio:
    """How near two values are: 1 at equality, falling evenly to 0 at a difference of 1 and beyond."""
    (a, b), (c, d) = one, other
    gap, whole = abs(a * d - c * b), b * d
    return (whole - gap, whole) if gap < whole else (0, 1)
