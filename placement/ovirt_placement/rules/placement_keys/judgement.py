"""How near a host's keys come to a VM's, what that is worth (steps 4 and 5), and how far each host comes."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from math import lcm

from ovirt_placement.model.record import Record, Worded
from ovirt_placement.rules.placement_keys.capacity import Shares, Shortage
from ovirt_placement.rules.placement_keys.hierarchy import CompiledKey, CompiledKeys
from ovirt_placement.rules.placement_keys.host_table import Column, Columns, HostTable, Instances
from ovirt_placement.rules.placement_keys.keys import SPECIAL_NAMES, KeySettings, Ratio, is_special


class Match(Record, frozen=True):
    """A name that the VM and the host both have: `count` times a value that is this near."""

    name: str
    #: Of the VM's key.
    value: Fraction
    weight: Fraction
    found: Fraction
    count: int
    proximity: Fraction

    @property
    def points(self) -> Fraction:
        """What all instances together add to the score."""
        return self.weight * self.proximity * self.count


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
                yield Match(key.name, key.value, key.weight, Fraction(*found), count, Fraction(*near))


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


@lru_cache(maxsize=64)
def thresholds(settings: KeySettings) -> tuple[Fraction, ...]:
    """What a score must exceed in each round, falling evenly from the first round to the last.

    A single round tests the last threshold, which decides whether a placement fails.
    """
    if settings.steps == 1:
        return (settings.final,)
    gap = (settings.initial - settings.final) / (settings.steps - 1)
    return tuple(settings.initial - gap * done for done in range(settings.steps))


def rounds_of(parts: Iterable[int], unit: int, to_exceed: Iterable[Fraction]) -> list[int | None]:
    """For each score the first round, from 1, whose threshold it exceeds; None if not even the last one.

    Scores are whole numbers of parts, of which `unit` make a point, and so must be the thresholds. Equal to a
    threshold is not above it.
    """
    rising = [-threshold.numerator * (unit // threshold.denominator) for threshold in to_exceed]
    found = (bisect_right(rising, -part) + 1 for part in parts)
    return [number if number <= len(rising) else None for number in found]


class HostDecision(Record, frozen=True, kw_only=True):
    """How far a host came: what there is must exceed what a VM needs, in MiB.

    Without room it has no system score; without a round it is refused and has no customer score.
    """

    host: str
    uncontended_mb: Fraction
    uncontended_need_mb: int
    contended_mb: int
    contended_need_mb: int
    #: Why the VM does not fit: nothing, if it does.
    shortages: tuple[Shortage, ...]
    system: Score | None = None
    round: int | None = None
    customer: Score | None = None


class KeyJudgement(Record, frozen=True, dict=True):
    """What each host asked about is worth to a VM, in the order in which they were asked about."""

    keys: CompiledKeys
    memory_mb: int
    table: HostTable
    places: Sequence[int]
    system: Scores
    #: The first round that each passes; None without room, or if it passes none.
    rounds: Sequence[int | None]

    @cached_property
    def customer(self) -> Scores:
        return score(self.keys.customer.values(), self.table.customer, len(self.table.ids))

    @cached_property
    def accepted(self) -> frozenset[str]:
        """The hosts that passed a round."""
        ids = self.table.ids
        return frozenset(
            ids[place] for place, number in zip(self.places, self.rounds, strict=True) if number is not None
        )

    @cached_property
    def passed(self) -> Mapping[str, tuple[int, int]]:
        """Of each host that passed a round, the first one, and the customer's score in parts."""
        ids, parts = self.table.ids, self.customer.parts
        return {
            ids[place]: (number, parts[place])
            for place, number in zip(self.places, self.rounds, strict=True)
            if number is not None
        }

    @cached_property
    def by_host(self) -> Mapping[str, HostDecision]:
        """How each host came so far."""
        found: dict[str, HostDecision] = {}
        for place, number in zip(self.places, self.rounds, strict=True):
            host, there = self.table.ids[place], self.table.capacities[place]
            need_mb = self.memory_mb + there.overhead_mb
            shortages = tuple(shortage for shortage, limit in there.limits if self.memory_mb > limit)
            found[host] = HostDecision(
                host=host,
                uncontended_mb=there.uncontended_mb,
                uncontended_need_mb=need_mb,
                contended_mb=there.free_mb,
                contended_need_mb=self.memory_mb if there.free_without_overhead else need_mb,
                shortages=shortages,
                system=None if shortages else self.system.at(place),
                round=number,
                customer=None if number is None else self.customer.at(place),
            )
        return found


def judge(
    keys: CompiledKeys, memory_mb: int, table: HostTable, places: Sequence[int], settings: KeySettings
) -> KeyJudgement:
    """Take a VM with these keys and this memory through steps 1 and 4, and on demand 5, on some hosts."""
    to_exceed, capacities = thresholds(settings), table.capacities
    shares = [one.shares for one in capacities] if any(map(is_special, keys.system)) else ()
    system = score(keys.system.values(), table.system, len(table.ids), shares=shares, compared_with=to_exceed)
    passed = rounds_of((system.parts[place] for place in places), system.unit, to_exceed)
    rounds = [
        number if memory_mb <= capacities[place].largest_vm_mb else None
        for number, place in zip(passed, places, strict=True)
    ]
    return KeyJudgement(keys, memory_mb, table, places, system, rounds)


class KeyFailure(Worded):
    """Why a VM finds no host at all."""

    CONSTRAINT = "constraint", "No host is capable of running it."
    THRESHOLD = "threshold", "No host's score is above the last threshold, {final}."


class KeyDecision(Record, frozen=True, dict=True):
    """Where a VM may go, best first: `choice` holds the hosts that are equally the best."""

    judgement: KeyJudgement | None = None
    #: What the scores had to exceed in each round.
    thresholds: tuple[Fraction, ...] = ()
    #: The first round that any host passed, and the hosts that passed it.
    round: int | None = None
    candidates: tuple[str, ...] = ()
    choice: tuple[str, ...] = ()
    failed: KeyFailure | None = None
    #: Whether its storage binds the VM to a host, so that keys had no say.
    local_storage: bool = False

    @cached_property
    def hosts(self) -> tuple[HostDecision, ...]:
        """How far each host came that was asked about."""
        return () if self.judgement is None else tuple(self.judgement.by_host.values())
