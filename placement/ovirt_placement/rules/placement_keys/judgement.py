"""How far each host comes: its round, the scores for all, and where the VM is placed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from functools import cached_property, lru_cache

from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.capacity import Room, room
from ovirt_placement.rules.placement_keys.hierarchy import CompiledKeys
from ovirt_placement.rules.placement_keys.host_table import HostTable
from ovirt_placement.rules.placement_keys.keys import is_special
from ovirt_placement.rules.placement_keys.score import Score, Scores, score
from ovirt_placement.rules.placement_keys.settings import KeySettings


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


class HostDecision(Record, frozen=True):
    """How far a host came.

    Without room it has no system score; without a round it is refused and has no customer score.
    """

    host: str
    room: Room
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
        return score(self.keys.customer.values(), self.table.lists.customer, len(self.table.ids))

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
        return {
            self.table.ids[place]: self._of_host(place, number)
            for place, number in zip(self.places, self.rounds, strict=True)
        }

    def _of_host(self, place: int, passed: int | None) -> HostDecision:
        space = room(self.table.capacities[place], self.memory_mb)
        return HostDecision(
            self.table.ids[place],
            space,
            None if space.shortages else self.system.at(place),
            passed,
            None if passed is None else self.customer.at(place),
        )


def judge(
    keys: CompiledKeys, memory_mb: int, table: HostTable, places: Sequence[int], settings: KeySettings
) -> KeyJudgement:
    """Take a VM with these keys and this memory through steps 1 and 4, and on demand 5, on some hosts."""
    to_exceed, capacities = thresholds(settings), table.capacities
    shares = [one.shares for one in capacities] if any(map(is_special, keys.system)) else ()
    system = score(
        keys.system.values(), table.lists.system, len(table.ids), shares=shares, compared_with=to_exceed
    )
    passed = rounds_of((system.parts[place] for place in places), system.unit, to_exceed)
    rounds = [
        number if memory_mb <= capacities[place].largest_vm_mb else None
        for number, place in zip(passed, places, strict=True)
    ]
    return KeyJudgement(keys, memory_mb, table, places, system, rounds)


class KeyFailure(StrEnum):
    """Why a VM finds no host at all."""

    #: No host is capable of running it.
    CONSTRAINT = "constraint"
    #: No host's score exceeds the last threshold.
    THRESHOLD = "threshold"


class KeyDecision(Record, frozen=True, dict=True):
    """Where a VM may go, best first: `choice` holds the hosts that are equally the best."""

    keys: CompiledKeys
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


def choose(judged: KeyJudgement, settings: KeySettings) -> KeyDecision:
    """Choose among hosts that are judged. A tie is left to the caller."""
    first = min((number for number, _ in judged.passed.values()), default=None)
    candidates = {host: part for host, (number, part) in judged.passed.items() if number == first}
    highest = max(candidates.values(), default=None)
    return KeyDecision(
        keys=judged.keys,
        judgement=judged,
        thresholds=thresholds(settings),
        round=first,
        candidates=tuple(candidates),
        choice=tuple(host for host, part in candidates.items() if part == highest),
        failed=None if candidates else _failure(judged),
    )


def _failure(judged: KeyJudgement) -> KeyFailure:
    lacking = all(judged.memory_mb > judged.table.capacities[place].largest_vm_mb for place in judged.places)
    return KeyFailure.CONSTRAINT if lacking else KeyFailure.THRESHOLD
