"""Explains why a host is refused or ranks as it does."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.rules.built_in.memory import MEMORY_HANDED_OUT
from ovirt_placement.rules.built_in.status import HOST_NOT_UP
from ovirt_placement.rules.placement_keys.capacity import Shortage
from ovirt_placement.rules.placement_keys.judgement import HostDecision
from ovirt_placement.rules.reasons import Reason, ReasonKind

MEMORY_IN_USE = ReasonKind(
    "memory_in_use", "only {number:g} MiB of its memory are physically free", veto=True
)
KEYS_REFUSE = ReasonKind(
    "keys_refuse",
    "the placement keys give it {number:g}, which is not above the last threshold",
    veto=True,
)
#: The first round is best.
KEYS_ROUND = ReasonKind("keys_round", "found in round {number:g} of the operator's placement keys")
#: It counts within a round.
KEYS_CUSTOMER_SCORE = ReasonKind("keys_customer_score", "the customer's placement keys give it {number:g}")


def vetoes(judged: HostDecision | None) -> Iterator[Reason]:
    """What keeps a VM off a host; None is a host that is not known."""
    if judged is None:
        yield Reason(HOST_NOT_UP)
        return
    room = judged.room
    for shortage in room.shortages:
        match shortage:
            case Shortage.NOT_UP:
                yield Reason(HOST_NOT_UP, host=judged.host)
            case Shortage.UNCONTENDED:
                yield Reason(MEMORY_HANDED_OUT, host=judged.host, number=float(room.uncontended_mb))
            case Shortage.CONTENDED:
                yield Reason(MEMORY_IN_USE, host=judged.host, number=room.contended_mb)
    if judged.system is not None and judged.round is None:
        yield Reason(KEYS_REFUSE, host=judged.host, number=float(judged.system.total))


def notes(judged: HostDecision | None) -> Iterator[Reason]:
    """What makes the rank of a host that a VM may have; else what keeps it off."""
    if judged is None or judged.system is None or judged.customer is None or judged.round is None:
        yield from vetoes(judged)
        return
    yield Reason(KEYS_ROUND, host=judged.host, number=judged.round)
    if next(judged.customer.matches, None):
        yield Reason(KEYS_CUSTOMER_SCORE, host=judged.host, number=float(judged.customer.total))
