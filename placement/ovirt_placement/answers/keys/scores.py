"""What placement keys say of a host."""

from __future__ import annotations

from ovirt_placement.answers.keys.sentences import figure
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys import key_filter, key_weight
from ovirt_placement.rules.placement_keys.capacity import Shortage
from ovirt_placement.rules.placement_keys.judgement import HostDecision
from ovirt_placement.rules.placement_keys.score import Score

#: The units of placement keys, which count where a policy enables them, or where that is asked for.
KEY_UNITS = frozenset({key_filter.RULE.name, key_weight.RULE.name})

HEADERS = ("system keys", "score", "round", "customer keys", "score")


class KeyMatch(Record, frozen=True, omit_defaults=False):
    """A key that counts, and how near the host comes to its value."""

    name: str
    value: float
    weight: float
    found: float
    #: How many VMs bring this value to the host.
    count: int
    proximity: float
    points: float


class KeyScore(Record, frozen=True, omit_defaults=False):
    total: float
    matches: tuple[KeyMatch, ...]


class HostKeys(Record, frozen=True, omit_defaults=False):
    """How far a host comes: without room it has no system score, without a round no customer's score."""

    shortages: tuple[Shortage, ...]
    uncontended_mb: float
    uncontended_need_mb: int
    contended_mb: float | None
    contended_need_mb: int
    round: int | None
    system: KeyScore | None
    customer: KeyScore | None


def host_keys(one: HostDecision) -> HostKeys:
    return HostKeys(
        shortages=tuple(one.room.shortages),
        uncontended_mb=float(one.room.uncontended_mb),
        uncontended_need_mb=one.room.uncontended_need_mb,
        contended_mb=one.room.contended_mb,
        contended_need_mb=one.room.contended_need_mb,
        round=one.round,
        system=_score(one.system),
        customer=_score(one.customer),
    )


def _score(score: Score | None) -> KeyScore | None:
    if score is None:
        return None
    matches = (
        KeyMatch(
            name=match.key.name,
            value=float(match.key.value),
            weight=float(match.key.weight),
            found=float(match.found),
            count=match.count,
            proximity=float(match.proximity),
            points=float(match.points),
        )
        for match in score.matches
    )
    return KeyScore(float(score.total), tuple(matches))


# -- in words


def cells(one: HostKeys) -> tuple[str, ...]:
    """What stands below `HEADERS`; all empty for a host without room."""
    return (
        _sum(one.system) if one.system else "",
        figure(one.system.total) if one.system else "",
        str(one.round or ""),
        _sum(one.customer) if one.customer else "",
        figure(one.customer.total) if one.customer else "",
    )


def _sum(score: KeyScore) -> str:
    """The names that count, as in `GEN: 80 x 0.5`; of several VMs that bring the same value, each counts."""
    return "\n".join(
        f"{match.name}: {figure(match.weight)} x {figure(match.proximity)}"
        + (f" x {match.count}" if match.count > 1 else "")
        for match in score.matches
    )
