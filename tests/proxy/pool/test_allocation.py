"""Who may use which worker next, and when a start is tried again."""

from __future__ import annotations

from collections import Counter
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_scheduler_proxy.pool import FIRST_SECONDS, LONGEST_SECONDS, Allocation, NextTry, Ticket
from ovirt_scheduler_proxy.processes import Worker
from tests.examples import examples

UNITS = "uv"
#: A wish for a worker, the return of one (well, or gone), a new one, a wish given up, an idle one that goes.
STEPS = st.lists(
    st.tuples(
        st.sampled_from([*["ask"] * 4, *["add"] * 2, "return", "lose", "withdraw", "take away"]),
        st.sampled_from(UNITS),
    ),
    min_size=3,
    max_size=20,
)


class Play:
    """Wishes are granted in the order in which they came, and no unit holds more than two workers."""

    def __init__(self) -> None:
        self.allocation = Allocation()
        self.held: list[tuple[str, object]] = []
        self.waiting: list[Ticket] = []
        self.idle: list[object] = []
        self.granted: list[Ticket] = []

    def step(self, what: str, unit: str) -> None:
        mine = [one for one in self.held if one[0] == unit]
        if what == "ask":
            self._ask(unit)
        elif what in ("return", "lose") and mine:
            self.held.remove(mine[0])
            worker = mine[0][1] if what == "return" else None
            self.idle += [worker] if worker is not None else []
            self.allocation.take_back(unit, cast("Worker", worker))
        elif what == "add":
            self.add()
        elif what == "withdraw" and self.waiting:
            self.allocation.withdraw(self.waiting.pop())
        elif what == "take away":
            worker = (self.idle or [held for _, held in self.held] or [object()])[0]
            assert self.allocation.remove(cast("Worker", worker)) is bool(self.idle)
            self.idle = self.idle[1:] if self.idle else []

    def add(self) -> None:
        worker = object()
        self.idle.append(worker)
        self.allocation.add(cast("Worker", worker))

    def _ask(self, unit: str) -> None:
        def granted(worker: Worker) -> None:
            self.idle.remove(worker)
            self.held.append((unit, worker))
            self.granted.append(ticket)
            if ticket in self.waiting:
                earlier = self.waiting[: self.waiting.index(ticket)]
                full = Counter(name for name, _ in self.held)
                assert all(full[other.unit] >= 2 for other in earlier), "an earlier wish could be granted"
                self.waiting.remove(ticket)

        ticket = Ticket(unit, granted)
        if not self.allocation.request(ticket):
            self.waiting.append(ticket)
        assert (ticket in self.granted) is (ticket not in self.waiting)

    def check(self) -> None:
        held = Counter(unit for unit, _ in self.held)
        assert max(held.values(), default=0) <= 2
        assert not self.idle or all(held[ticket.unit] == 2 for ticket in self.waiting)


@settings(max_examples=examples(250))
@given(STEPS)
def test_as_many_workers_are_wanted_as_would_be_put_to_use_at_once(steps: list[tuple[str, str]]) -> None:
    for count in range(len(steps) + 1):
        play = Play()
        for step in steps[:count]:
            play.step(*step)
            play.check()
        wanted, waiting = play.allocation.wanted(), len(play.waiting)
        for number in range(wanted + 1):
            idle = len(play.idle)
            play.add()
            play.check()
            assert (len(play.idle) == idle) is (number < wanted)
        assert waiting - len(play.waiting) == wanted


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 30)), max_size=40))
def test_each_failure_in_a_row_doubles_the_delay(events: list[tuple[bool, float]]) -> None:
    now = [1000.0]
    next_try = NextTry(lambda: now[0])
    due, row = now[0], 0
    for failed, pause in events:
        now[0] += pause
        assert (next_try.remaining == 0) == (now[0] >= due)
        if not failed:
            next_try.succeeded()
            due, row = now[0], 0
        elif now[0] < due:
            assert next_try.failed() is None, "it belongs to the failure before"
        else:
            expected = min(LONGEST_SECONDS, FIRST_SECONDS * 2**row)
            assert next_try.failed() == expected
            due, row = now[0] + expected, row + 1
