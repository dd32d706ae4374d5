"""Decides what is to be said of an HA reservation, from what was said: once each, and no flood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ovirt_enforcer.ha_monitor.verdict import ReservationState
from ovirt_enforcer.notifications.kinds import NoticeKind

_DAY_SECONDS: Final = 24 * 3600.0
#: No verdict must hold for longer than this before it is reported.
_LONGEST_HOLD_SECONDS: Final = 3600.0
_MOST_DOUBLINGS: Final = 16

_KINDS: Final = {
    ReservationState.SAFE: NoticeKind.HA_ALL_CLEAR,
    ReservationState.OFF: NoticeKind.HA_ALL_CLEAR,
    ReservationState.UNSAFE: NoticeKind.HA_ALERT,
    ReservationState.UNKNOWN: NoticeKind.HA_UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class Announced:
    """Something that was said of a cluster, and how long ago."""

    kind: NoticeKind
    age_seconds: float


def due(
    said: Sequence[Announced], state: ReservationState, held_seconds: float, hold_seconds: float
) -> NoticeKind | None:
    """What is to be said now of a cluster that has been in this state for so long; None if nothing.

    `said` is what was said of it, the oldest first. An alert is sent at once; what takes it back, and that
    nothing is known, once it has held: for `hold_seconds`, doubled with each further such notice of the last
    day. A state that lasts is reported again after a day, but for a good one.
    """
    kind = _KINDS[state]
    if not _is_news(said, kind):
        return None
    if kind is NoticeKind.HA_ALERT or held_seconds >= hold(said, kind, hold_seconds):
        return kind
    return None


def hold(said: Sequence[Announced], kind: NoticeKind, hold_seconds: float) -> float:
    """For how many seconds a state must have held before it is reported."""
    lately = sum(one.kind is kind and one.age_seconds < _DAY_SECONDS for one in said)
    return float(min(_LONGEST_HOLD_SECONDS, hold_seconds * 2 ** min(lately, _MOST_DOUBLINGS)))


def _is_news(said: Sequence[Announced], kind: NoticeKind) -> bool:
    last = said[-1] if said else None
    if kind is NoticeKind.HA_ALL_CLEAR:
        return last is not None and last.kind is not kind
    if kind is NoticeKind.HA_ALERT:
        last = _last_verdict(said)
    return last is None or last.kind is not kind or last.age_seconds >= _DAY_SECONDS


def _last_verdict(said: Sequence[Announced]) -> Announced | None:
    """The last that was known: that nothing is known takes no alert back."""
    return next((one for one in reversed(said) if one.kind is not NoticeKind.HA_UNKNOWN), None)
