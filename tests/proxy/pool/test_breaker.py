"""When a unit is cut off, and when it gets another chance."""

from __future__ import annotations

import pytest

from ovirt_scheduler_proxy.pool.breaker import Breakers
from ovirt_scheduler_proxy.pool.outcome import Cause
from tests.clock import Clock


@pytest.mark.parametrize(
    ("cause", "times"),
    [(Cause.OVERRAN, 3), (Cause.NOT_STARTED, 3), (Cause.CRASHED, 5), (Cause.EXITED, 5)],
)
def test_it_opens_after_this_many_failures_in_a_minute(cause: Cause, times: int) -> None:
    clock = Clock(1000.0)
    breakers = Breakers(clock)
    for _ in range(times - 1):
        breakers.record("u", cause)
        clock.now += 10
        assert breakers.admit("u")
    breakers.record("u", cause)
    assert not breakers.admit("u")
    assert breakers.admit("another")
    assert breakers.open_keys() == ["u"]


def test_failures_long_ago_do_not_count() -> None:
    clock = Clock(1000.0)
    breakers = Breakers(clock)
    for _ in range(10):
        breakers.record("u", Cause.OVERRAN)
        clock.now += 31
        assert breakers.admit("u")


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


def test_half_open_opens_again_when_it_fails() -> None:
    clock = Clock(1000.0)
    breakers = _opened(clock)
    clock.now += 31
    assert breakers.admit("u")
    breakers.record("u", Cause.OVERRAN)
    assert not breakers.admit("u")
    clock.now += 31
    assert breakers.admit("u")


def test_a_trial_that_never_reached_the_unit_is_repeated() -> None:
    clock = Clock(1000.0)
    breakers = _opened(clock)
    clock.now += 31
    assert breakers.admit("u")
    breakers.record("u", Cause.NO_WORKER)
    assert breakers.admit("u")


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
