"""Deadlines: the limit is by the clock, and shares are counted in time in which there was a CPU."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from ovirt_placement.planning.deadline import NEVER, Deadline


@dataclass
class Machine:
    """A clock, and how much of its time a process gets; more than all of it where threads work side by side."""

    busy: float = 1.0
    now: float = field(default=1000.0)
    worked: float = field(default=7.0)

    def __call__(self, seconds: float) -> Deadline:
        return Deadline.after(seconds, lambda: self.now, lambda: self.worked)

    def run(self, seconds: float) -> None:
        self.now += seconds
        self.worked += seconds * self.busy


def worked_in(machine: Machine, deadline: Deadline) -> float:
    began = machine.worked
    while not deadline.over:
        machine.run(0.125)
    return machine.worked - began


@pytest.mark.parametrize("busy", [1.0, 0.5, 0.25, 2.0])
def test_the_clock_is_the_limit_on_every_machine(busy: float) -> None:
    machine = Machine(busy)
    deadline = machine(30.0)
    machine.run(29.5)
    assert not deadline.over
    machine.run(0.5)
    assert deadline.over


def test_a_share_is_as_much_work_on_a_busy_machine_as_on_an_idle_one() -> None:
    idle, busy = Machine(1.0), Machine(0.5)
    assert worked_in(idle, idle(30.0).within(0.3)) == worked_in(busy, busy(30.0).within(0.3)) == 9.0


def test_a_stage_leaves_half_of_the_rest_by_the_clock_to_those_after_it() -> None:
    machine = Machine(busy=0.1)
    deadline = machine(30.0)
    worked_in(machine, deadline.within(0.6))
    assert deadline.seconds_left() == 6.0


def test_threads_that_work_side_by_side_do_not_shorten_a_stage() -> None:
    machine = Machine(busy=2.0)
    deadline = machine(30.0)
    worked_in(machine, deadline.within(0.5))
    assert deadline.seconds_left() == 15.0


def test_a_share_of_a_share_ends_within_it() -> None:
    machine = Machine(busy=0.5)
    outer = machine(32.0).within(0.5)
    assert worked_in(machine, outer.within(0.25)) == 4.0
    assert not outer.over
    assert worked_in(machine, outer) <= 12.0


def test_without_a_limit_a_share_has_none() -> None:
    assert not NEVER.within(0.1).over
