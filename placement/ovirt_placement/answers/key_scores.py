"""What placement keys say of a host, as data."""

from __future__ import annotations

from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.capacity import Shortage
from ovirt_placement.rules.placement_keys.judgement import HostDecision
from ovirt_placement.rules.placement_keys.score import Score


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
