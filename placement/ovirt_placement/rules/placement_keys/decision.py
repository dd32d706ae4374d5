"""All steps together: where a VM is placed, and what every host was worth on the way there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from fractions import Fraction

from ovirt_placement.rules.placement_keys.capacity import Capacity, Room, room
from ovirt_placement.rules.placement_keys.compile import CompiledKeys
from ovirt_placement.rules.placement_keys.node_keys import NodeKeys
from ovirt_placement.rules.placement_keys.rounds import round_of, thresholds
from ovirt_placement.rules.placement_keys.score import Score, Scoring
from ovirt_placement.rules.placement_keys.settings import DEFAULTS, Settings
from ovirt_placement.rules.verdict import Struct


class Failure(StrEnum):
    """Why a VM finds no host at all."""

    #: No host is capable of running it.
    CONSTRAINT = "constraint"
    #: No host's score exceeds the last threshold.
    THRESHOLD = "threshold"


class HostState(Struct, frozen=True):
    """A host as the steps see it, without the VM to be placed."""

    id: str
    capacity: Capacity
    keys: NodeKeys


class HostDecision(Struct, frozen=True):
    """How far a host came.

    Without room it has no system score; without a round it is refused and has no customer score.
    """

    host: str
    room: Room
    system: Score | None = None
    round: int | None = None
    customer: Score | None = None


class Decision(Struct, frozen=True):
    """Where a VM may go, best first: `choice` holds the hosts that are equally the best."""

    keys: CompiledKeys
    hosts: tuple[HostDecision, ...] = ()
    #: What the scores had to exceed in each round.
    thresholds: tuple[Fraction, ...] = ()
    #: The first round that any host passed, and the hosts that passed it.
    round: int | None = None
    candidates: tuple[str, ...] = ()
    choice: tuple[str, ...] = ()
    failed: Failure | None = None
    #: Whether its storage binds the VM to a host, so that keys had no say.
    local_storage: bool = False


def decide(
    keys: CompiledKeys, memory_mb: int, hosts: Sequence[HostState], settings: Settings = DEFAULTS
) -> Decision:
    """Take a VM with these keys and this memory through steps 1, 4 and 5. A tie is left to the caller."""
    bars = thresholds(settings)
    system, customer = Scoring(keys.system.values()), Scoring(keys.customer.values())

    def judge(host: HostState) -> HostDecision:
        space = room(host.capacity, memory_mb, settings.overhead_mb)
        if space.shortages:
            return HostDecision(host.id, space)
        score = system.score(host.keys.system)
        passed = round_of(score.total, bars)
        wanted = None if passed is None else customer.score(host.keys.customer)
        return HostDecision(host.id, space, score, passed, wanted)

    judged = tuple(judge(host) for host in hosts)
    first = min((one.round for one in judged if one.round is not None), default=None)
    candidates = [one for one in judged if one.round is not None and one.round == first]
    return Decision(
        keys=keys,
        hosts=judged,
        thresholds=bars,
        round=first,
        candidates=tuple(one.host for one in candidates),
        choice=_best(candidates),
        failed=None if candidates else _failure(judged),
    )


def decide_local(keys: CompiledKeys, hosts: Sequence[HostState], disk_host: str | None) -> Decision:
    """Start a VM whose storage is local: only the host of its disk can take it, and keys do not count."""
    choice = tuple(host.id for host in hosts if host.id == disk_host and host.capacity.up)
    failed = None if choice else Failure.CONSTRAINT
    return Decision(keys=keys, candidates=choice, choice=choice, failed=failed, local_storage=True)


def _best(candidates: Iterable[HostDecision]) -> tuple[str, ...]:
    totals = {one.host: one.customer.total for one in candidates if one.customer is not None}
    highest = max(totals.values(), default=None)
    return tuple(host for host, total in totals.items() if total == highest)


def _failure(judged: Iterable[HostDecision]) -> Failure:
    return Failure.CONSTRAINT if all(one.room.shortages for one in judged) else Failure.THRESHOLD
