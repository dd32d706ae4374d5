"""A quick test takes at most half a second of its own; what takes longer is of another suite.

Its own is what it computes (all threads, and processes that it starts and awaits) and what it waits for
clocks and files. Time in which one of its threads could run, but had no processor, is not its own, nor is a
fixture that it shares with others.
"""

from __future__ import annotations

import operator
import os
import resource
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from _pytest.runner import runtestprotocol

from tests.examples import EXAMPLES

LIMIT_SECONDS = 0.5
_FEW_EXAMPLES = 30
_THREADS = Path("/proc/self/task")


class Reading(NamedTuple):
    """What clocks say at a moment, in seconds."""

    wall: float
    computed: float
    children: float
    #: How long each thread has waited for a processor.
    delays: Mapping[str, float]


class Spent(NamedTuple):
    """Seconds between two moments."""

    wall: float = 0.0
    computed: float = 0.0
    children: float = 0.0
    #: In which threads that are there still waited for a processor, added up.
    delayed: float = 0.0

    def less(self, other: Spent) -> Spent:
        return Spent(*map(operator.sub, self, other))

    def more(self, other: Spent) -> Spent:
        return Spent(*map(operator.add, self, other))

    def own(self, slowness: float) -> float:
        """What of it counts, where what it waits for takes this many times longer than on an idle machine."""
        idle = max(0.0, self.wall - self.computed - self.delayed)
        return self.computed + max(self.children, idle / slowness)


class OwnTime:
    """Measures each quick test."""

    def __init__(self) -> None:
        self._shared = Spent()
        self._at_end: Reading | None = None
        #: The slowest so far, by test.
        self.slowest: dict[str, float] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not is_quick(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports, own = self._run(item, nextitem)
        self._note(item.nodeid, own)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        first, before = read(), self._shared
        try:
            return (yield)
        finally:  # what is made within it counts once
            self._shared = before.more(between(first, read()))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        if nextitem is None or nextitem.path != item.path:  # what is shared ends as well
            self._at_end = read()
        return (yield)

    def _run(self, item: pytest.Item, nextitem: pytest.Item | None) -> tuple[list[pytest.TestReport], float]:
        self._shared, self._at_end = Spent(), None
        began, first = time.time(), read()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        wall = (self._at_end.wall if self._at_end else time.perf_counter()) - first.wall - self._shared.wall
        if wall <= LIMIT_SECONDS:
            return reports, wall
        spent = between(first, self._at_end or read()).less(self._shared)
        return reports, spent.own(slowness() if spent.children > 0 or _has_children(began) else 1.0)

    def _note(self, test: str, own: float) -> None:
        self.slowest[test] = own
        if len(self.slowest) > 20:
            del self.slowest[min(self.slowest, key=lambda known: self.slowest[known])]


def is_quick(item: pytest.Item) -> bool:
    """Whether it is of `make test`, and draws as many examples as there."""
    return EXAMPLES <= _FEW_EXAMPLES and not any(map(item.get_closest_marker, ("system", "nightly")))


def read() -> Reading:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Reading(time.perf_counter(), time.process_time(), used.ru_utime + used.ru_stime, _delays())


def between(first: Reading, last: Reading) -> Spent:
    delayed = sum(delay - first.delays.get(thread, 0.0) for thread, delay in last.delays.items())
    return Spent(
        last.wall - first.wall, last.computed - first.computed, last.children - first.children, delayed
    )


def slowness() -> float:
    """How many times longer than it computes a process takes at this moment."""
    began, computed = time.perf_counter(), time.thread_time()
    while time.thread_time() - computed < 0.03:
        pass
    return max(1.0, (time.perf_counter() - began) / 0.03)


def _delays() -> dict[str, float]:
    """Nothing where the kernel counts no delays: all that a test waits for is its own there."""
    found = {}
    with suppress(OSError):
        for thread in os.listdir(_THREADS):
            with suppress(OSError, ValueError):  # it has ended meanwhile
                found[thread] = int((_THREADS / thread / "schedstat").read_text().split()[1]) / 1e9
    return found


def _has_children(since: float) -> bool:
    """Whether a process runs still that this one, or one that it has started, began since then."""
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if child.create_time() >= since:
                return True
    return False
