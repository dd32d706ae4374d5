"""What is said of an HA reservation: once each, again after a day, no flood, and nothing unknown clears."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ovirt_enforcer.ha_monitor.announcing import Announced, due
from ovirt_enforcer.ha_monitor.verdict import ReservationState
from ovirt_enforcer.notifications.kinds import NoticeKind

HOLD = 60.0
DAY = 24 * 3600.0
#: How often is looked, in seconds.
EVERY = 30.0


def reported(states: list[ReservationState]) -> list[tuple[float, NoticeKind]]:
    """What is said, and when, if a look after another shows these states."""
    said: list[tuple[float, NoticeKind]] = []
    since = 0.0
    for number, state in enumerate(states):
        now = number * EVERY
        if number == 0 or states[number - 1] is not state:
            since = now
        history = [Announced(kind, now - at) for at, kind in said]
        kind = due(history, state, now - since, HOLD)
        if kind is not None:
            said.append((now, kind))
    return said


SAFE, UNSAFE, UNKNOWN, OFF = (
    ReservationState.SAFE,
    ReservationState.UNSAFE,
    ReservationState.UNKNOWN,
    ReservationState.OFF,
)


def kinds(states: list[ReservationState]) -> list[NoticeKind]:
    return [kind for _, kind in reported(states)]


def test_each_is_reported_once() -> None:
    assert kinds([SAFE] * 9) == []
    assert reported([SAFE, *[UNSAFE] * 9, *[SAFE] * 9]) == [
        (EVERY, NoticeKind.HA_ALERT),
        (10 * EVERY + HOLD, NoticeKind.HA_ALL_CLEAR),
    ]


def test_an_alert_that_lasts_is_reported_again_after_a_day() -> None:
    found = reported([UNSAFE] * int(2.5 * DAY / EVERY))
    assert found == [(0.0, NoticeKind.HA_ALERT), (DAY, NoticeKind.HA_ALERT), (2 * DAY, NoticeKind.HA_ALERT)]


def test_what_is_unknown_clears_nothing_and_is_reported_once() -> None:
    assert kinds([UNSAFE, *[UNKNOWN] * 99, *[UNSAFE] * 99]) == [NoticeKind.HA_ALERT, NoticeKind.HA_UNKNOWN]
    assert kinds([UNSAFE, *[UNKNOWN] * 9, *[SAFE] * 9]) == [
        NoticeKind.HA_ALERT,
        NoticeKind.HA_UNKNOWN,
        NoticeKind.HA_ALL_CLEAR,
    ]
    assert kinds([UNKNOWN, SAFE, UNKNOWN, SAFE]) == []


def test_a_reservation_that_is_switched_off_takes_the_alert_back() -> None:
    assert kinds([UNSAFE, *[OFF] * 9]) == [NoticeKind.HA_ALERT, NoticeKind.HA_ALL_CLEAR]
    assert kinds([OFF] * 9) == []


@given(st.lists(st.tuples(st.sampled_from(list(ReservationState)), st.integers(1, 40)), max_size=60))
def test_what_was_said_last_is_true_in_the_end(runs: list[tuple[ReservationState, int]]) -> None:
    """Once a state has lasted, it is what was said last; and an alert is reported at once."""
    states = [state for state, times in runs for _ in range(times)]
    for end in (SAFE, UNSAFE, UNKNOWN):
        found = kinds([*states, *[end] * (int(3600 / EVERY) + 2)])
        known = [kind for kind in found if kind is not NoticeKind.HA_UNKNOWN]
        if end is SAFE:
            assert not found or found[-1] is NoticeKind.HA_ALL_CLEAR
        elif end is UNSAFE:
            assert known[-1] is NoticeKind.HA_ALERT
        else:
            assert found[-1] is NoticeKind.HA_UNKNOWN
        assert not known or known[0] is NoticeKind.HA_ALERT or found[0] is NoticeKind.HA_UNKNOWN


@given(st.integers(1, 20), st.integers(1, 20))
def test_a_cluster_that_flaps_all_day_makes_no_flood(bad: int, good: int) -> None:
    states = ([UNSAFE] * bad + [SAFE] * good) * (int(DAY / EVERY) // (bad + good) + 1)
    assert len(reported(states[: int(DAY / EVERY)])) <= 64
