"""When a unit is cut off, and when it gets another chance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_scheduler_proxy.processes import Cause
from ovirt_scheduler_proxy.scheduler import Breakers
from tests.clock import Clock


@pytest.mark.parametrize("cause", [None, Cause.RAISED, Cause.NOTHING])
def test_half_open_lets_one_through_and_closes_when_it_answers(cause: Cause | None) -> None:
    clock = Clock(1000.0)
    breakers = _opened(clock)
    clock.now += 29
    assert not breakers.admit("u")
    clock.now += 2
    assert [breakers.admit("u") for _ in range(3)] == [True, False, False]
    breakers.record("u", cause)
    assert all(breakers.admit("u") for _ in range(3))
    assert breakers.open_keys() == []


def test_without_a_worker_nothing_is_tried() -> None:
    clock = Clock(1000.0)
    breakers = _opened(clock)
    clock.now += 31
    assert not breakers.admit("u", ready=False)
    assert breakers.admit("u")
    assert breakers.admit("another", ready=False), "what was not cut off may wait for a worker"


def _opened(clock: Clock) -> Breakers:
    breakers = Breakers(clock)
    for _ in range(3):
        breakers.record("u", Cause.OVERRAN)
    return breakers


_FAILURES = st.sampled_from([Cause.OVERRAN, Cause.NOT_STARTED, Cause.CRASHED, Cause.EXITED, Cause.MEMORY])
_STEPS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1.0, 14.0, 29.0, 30.0, 31.0, 59.0, 61.0]),
        _FAILURES | _FAILURES | _FAILURES | st.sampled_from([None, Cause.RAISED, Cause.NO_WORKER]),
        st.booleans(),
    ),
    max_size=40,
)


class _Rule:
    """What the breaker of a unit is to do, by all that has happened to it."""

    def __init__(self) -> None:
        self.failures: dict[bool, list[float]] = {True: [], False: []}
        self.opened_at: float | None = None
        self.trying = False

    def admits(self, now: float) -> bool:
        return self.opened_at is None or (not self.trying and now - self.opened_at >= 30)

    def ends(self, cause: Cause | None, now: float) -> None:
        if cause is Cause.NO_WORKER:
            self.trying = False
        elif cause is None or cause is Cause.RAISED:
            if self.trying:
                self.__init__()  # type: ignore[misc]
        else:
            overran = cause in (Cause.OVERRAN, Cause.NOT_STARTED)
            times, most = self.failures[overran], 3 if overran else 5
            times.append(now)
            if self.trying or (len(times) >= most and now - times[-most] <= 60):
                self.opened_at = now
            self.trying = False


@given(_STEPS)
def test_whatever_happens_a_unit_is_cut_off_and_tried_by_the_rule(
    steps: list[tuple[float, Cause | None, bool]],
) -> None:
    """Calls that overlap are in it: some are asked about while another is under way."""
    clock = Clock(1000.0)
    breakers, rule, under_way = Breakers(clock), _Rule(), 0
    for seconds, cause, ends in steps:
        clock.now += seconds
        admitted = breakers.admit("u")
        assert admitted is rule.admits(clock.now)
        if admitted:
            under_way += 1
            rule.trying = rule.opened_at is not None
        if under_way and ends:
            under_way -= 1
            breakers.record("u", cause)
            rule.ends(cause, clock.now)
        assert breakers.open_keys() == (["u"] if rule.opened_at is not None else [])


@given(
    st.lists(st.tuples(st.integers(30, 500), _FAILURES), min_size=2, max_size=6),
    st.sampled_from([Cause.OVERRAN, Cause.CRASHED]),
)
def test_each_trial_that_fails_cuts_it_off_again_for_as_long(
    trials: list[tuple[int, Cause]], cause: Cause
) -> None:
    clock = Clock(1000.0)
    breakers = Breakers(clock)
    for _ in range(5):
        breakers.record("u", cause)
    for seconds, failure in trials:
        clock.now += seconds
        assert breakers.admit("u")
        breakers.record("u", failure)
        clock.now += 29.5
        assert not breakers.admit("u")
        clock.now += 0.5
    assert breakers.admit("u")
