"""Deadlines: the limit is by the clock, and shares are counted in time in which there was a CPU."""

from __future__ import annotations

import math

import pytest

from ovirt_placement.planning.plan import NEVER, Deadline
from tests.placement.planning.clocks import Clock


def ending(clock: Clock, seconds: float) -> Deadline:
    return Deadline.after(seconds, lambda: clock.now, lambda: clock.worked)


def worked_in(clock: Clock, deadline: Deadline) -> float:
    began = clock.worked
    while not deadline.over:
        clock.run(0.125)
    return clock.worked - began


@pytest.mark.parametrize("busy", [1.0, 0.5, 0.25, 2.0])
def test_the_clock_is_the_limit_on_every_machine(busy: float) -> None:
    clock = Clock(busy)
    deadline = ending(clock, 30.0)
    clock.run(29.5)
    assert not deadline.over
    clock.run(0.5)
    assert deadline.over


def test_a_share_is_as_much_work_on_a_busy_machine_as_on_an_idle_one() -> None:
    idle, busy = Clock(1.0), Clock(0.5)
    assert (
        worked_in(idle, ending(idle, 30.0).within(0.3))
        == worked_in(busy, ending(busy, 30.0).within(0.3))
        == 9.0
    )


def test_a_stage_leaves_half_of_the_rest_by_the_clock_to_those_after_it() -> None:
    clock = Clock(busy=0.1)
    deadline = ending(clock, 30.0)
    worked_in(clock, deadline.within(0.6))
    assert deadline.seconds_left() == 6.0


def test_nothing_is_lent_to_a_stage_after_which_there_is_work_to_be_done() -> None:
    clock = Clock(busy=0.1)
    deadline = ending(clock, 32.0)
    worked_in(clock, deadline.within(0.75, lent=0.0))
    assert deadline.seconds_left() == 8.0


def test_threads_that_work_side_by_side_do_not_shorten_a_stage() -> None:
    clock = Clock(busy=2.0)
    deadline = ending(clock, 30.0)
    worked_in(clock, deadline.within(0.5))
    assert deadline.seconds_left() == 15.0


def test_a_share_of_a_share_ends_within_it() -> None:
    clock = Clock(busy=0.5)
    outer = ending(clock, 32.0).within(0.5)
    assert worked_in(clock, outer.within(0.25)) == 4.0
    assert not outer.over
    assert worked_in(clock, outer) <= 12.0


def test_without_a_limit_a_share_has_none() -> None:
    share = NEVER.within(0.1)
    assert (share.over, share.seconds_left()) == (False, math.inf)
