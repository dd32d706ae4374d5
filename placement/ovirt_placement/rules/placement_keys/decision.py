"""All steps together: where a VM is placed, and what every host was worth on the way there."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from ovirt_placement.rules.placement_keys.compile import CompiledKeys
from ovirt_placement.rules.placement_keys.host_table import HostState, table_of
from ovirt_placement.rules.placement_keys.judgement import HostDecision, Judgement, judge
from ovirt_placement.rules.placement_keys.rounds import thresholds
from ovirt_placement.rules.placement_keys.settings import DEFAULTS, Settings
from ovirt_placement.rules.verdict import Struct

#: With what a decision is made from and tells, which those who ask need, too.
__all__ = [
    "Decision",
    "Failure",
    "HostDecision",
    "HostState",
    "choose",
    "decide",
    "decide_local",
]


class Failure(StrEnum):
    """Why a VM finds no host at all."""

    #: No host is capable of running it.
    CONSTRAINT = "constraint"
    #: No host's score exceeds the last threshold.
    THRESHOLD = "threshold"


class Decision(Struct, frozen=True, dict=True):
    """Where a VM may go, best first: `choice` holds the hosts that are equally the best."""

    keys: CompiledKeys
    judgement: Judgement | None = None
    #: What the scores had to exceed in each round.
    thresholds: tuple[Fraction, ...] = ()
    #: The first round that any host passed, and the hosts that passed it.
    round: int | None = None
    candidates: tuple[str, ...] = ()
    choice: tuple[str, ...] = ()
    failed: Failure | None = None
    #: Whether its storage binds the VM to a host, so that keys had no say.
    local_storage: bool = False

    @cached_property
    def hosts(self) -> tuple[HostDecision, ...]:
        """How far each host came that was asked about."""
        return () if self.judgement is None else tuple(self.judgement.by_host.values())


def decide(
    keys: CompiledKeys, memory_mb: int, hosts: Sequence[HostState], settings: Settings = DEFAULTS
) -> Decision:
    """Take a VM with these keys and this memory through steps 1, 4 and 5. A tie is left to the caller."""
    table = table_of(hosts, settings.overhead_mb)
    return choose(judge(keys, memory_mb, table, range(len(hosts)), settings), settings)


def choose(judged: Judgement, settings: Settings) -> Decision:
    """Choose among hosts that are judged."""
    first = min((number for number, _ in judged.passed.values()), default=None)
    band = {host: wish for host, (number, wish) in judged.passed.items() if number == first}
    highest = max(band.values(), default=None)
    return Decision(
        keys=judged.keys,
        judgement=judged,
        thresholds=thresholds(settings),
        round=first,
        candidates=tuple(band),
        choice=tuple(host for host, wish in band.items() if wish == highest),
        failed=None if band else _failure(judged),
    )


def decide_local(keys: CompiledKeys, hosts: Sequence[HostState], disk_host: str | None) -> Decision:
    """Start a VM whose storage is local: only the host of its disk can take it, and keys do not count."""
    choice = tuple(host.id for host in hosts if host.id == disk_host and host.capacity.up)
    failed = None if choice else Failure.CONSTRAINT
    return Decision(keys=keys, candidates=choice, choice=choice, failed=failed, local_storage=True)


def _failure(judged: Judgement) -> Failure:
    lacking = all(judged.memory_mb > judged.table.largest_vm_mb[place] for place in judged.places)
    return Failure.CONSTRAINT if lacking else Failure.THRESHOLD
