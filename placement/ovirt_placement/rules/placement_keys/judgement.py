"""How far each host comes: its round and the customer's score for all, and the rest for those who ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.capacity import Room, room
from ovirt_placement.rules.placement_keys.compile import CompiledKeys
from ovirt_placement.rules.placement_keys.host_table import HostTable
from ovirt_placement.rules.placement_keys.keys import is_special
from ovirt_placement.rules.placement_keys.rounds import rounds_of, thresholds
from ovirt_placement.rules.placement_keys.score import Score, Scores, score
from ovirt_placement.rules.placement_keys.settings import KeySettings
from ovirt_placement.rules.placement_keys.special import NO_SHARES


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
        space = room(self.table.capacities[place], self.memory_mb, self.table.overhead_mb)
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
    to_exceed = thresholds(settings)
    shares = table.special if any(map(is_special, keys.system)) else NO_SHARES
    system = score(
        keys.system.values(), table.lists.system, len(table.ids), shares=shares, compared_with=to_exceed
    )
    passed = rounds_of((system.parts[place] for place in places), system.unit, to_exceed)
    rounds = [
        number if memory_mb <= table.largest_vm_mb[place] else None
        for number, place in zip(passed, places, strict=True)
    ]
    return KeyJudgement(keys, memory_mb, table, places, system, rounds)
