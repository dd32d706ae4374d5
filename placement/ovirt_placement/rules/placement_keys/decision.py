"""All steps together: where a VM is placed, and what every host was worth on the way there."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.compile import CompiledKeys
from ovirt_placement.rules.placement_keys.judgement import HostDecision, KeyJudgement
from ovirt_placement.rules.placement_keys.rounds import thresholds
from ovirt_placement.rules.placement_keys.settings import KeySettings


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
    lacking = all(judged.memory_mb > judged.table.largest_vm_mb[place] for place in judged.places)
    return KeyFailure.CONSTRAINT if lacking else KeyFailure.THRESHOLD
