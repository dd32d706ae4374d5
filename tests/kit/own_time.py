"""A quick test takes at most half a second of its own; what takes longer is of another suite.

Its own is what it computes, in all threads, and what it waits for: clocks, files, processes and threads.
Where the machine is busy otherwise, that is less than what passes. Time in which it could run, but had no
processor, is not its own; the rest, except for clocks, counts as on an idle machine of ordinary speed. Nor is
a fixture its own that it shares. What is too slow runs twice more before it fails; its best time counts.
"""

from __future__ import annotations

import operator
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from _pytest.runner import runtestprotocol

from tests.examples import EXAMPLES

LIMIT_SECONDS = 0.5
#: Four workers on two cores disturb each other's measures of what they compute by up to this factor; how long
#: a test slept is known better.
_ERROR = 2.0
_ERROR_OF_SLEEP = 1.1
_TRIES = 3
_FEW_EXAMPLES = 30
#: Who sleeps for less polls for something, and would be done sooner on an idle machine.
_LONG_SECONDS = 0.2
#: Additions, and how many seconds of a processor they take on an ordinary machine: one that is slower, or was
#: busy when a worker began, must not fail what is quick elsewhere.
_SAMPLE, _ORDINARY_SECONDS = 500_000, 0.02
_WHAT_TO_DO = (
    "It took {own:.2f} s of its own, more than the {limit} s of a quick test. Let it wait for no clock, use "
    "the cheap twin of what it starts (see CONTRIBUTING.md), or mark it `system` or `nightly`."
)
#: What the main thread has computed, how long it waited for a processor, and how often; in nanoseconds.
_OF_THE_MAIN_THREAD = Path("/proc/self/schedstat")


class Reading(NamedTuple):
    """What clocks say at a moment, or has passed between two: seconds."""

    wall: float = 0.0
    computed: float = 0.0
    #: By processes that it has awaited.
    children: float = 0.0
    #: Without a processor, in the main thread.
    delayed: float = 0.0
    #: For clocks, in the main thread.
    slept: float = 0.0

    def less(self, other: Reading) -> Reading:
        return Reading(*map(operator.sub, self, other))

    def more(self, other: Reading) -> Reading:
        return Reading(*map(operator.add, self, other))

    def own(self, slowness: Slowness) -> float:
        """What of it counts: what it would have been on an idle machine, but for clocks."""
        waited = max(0.0, self.wall - self.computed - self.delayed - self.slept) / slowness.waiting
        return self.computed / slowness.computing + max(
            self.children / slowness.computing, self.slept + waited
        )


class Slowness(NamedTuple):
    """How many times longer something takes at the moment than on an idle machine of ordinary speed."""

    computing: float
    waiting: float


class OwnTime:
    """Measures each quick test, and fails those that are slow."""

    def __init__(self) -> None:
        self._shared = Reading()
        self._at_end: Reading | None = None
        self._slept = 0.0
        self._fastest = min(_ORDINARY_SECONDS, *(_sample()[0] for _ in range(5)))
        #: The slowest so far, by test.
        self.slowest: dict[str, float] = {}

    def pytest_configure(self, config: pytest.Config) -> None:
        patch = pytest.MonkeyPatch()
        patch.setattr(time, "sleep", self._noted(time.sleep, lambda given: given[0]))
        patch.setattr(threading.Condition, "wait", self._noted(threading.Condition.wait, _time_out))
        config.add_cleanup(patch.undo)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not is_quick(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports, own, slept = self._run(item, nextitem)
        for _ in range(_TRIES - 1):
            if own <= LIMIT_SECONDS or not all(report.passed for report in reports):
                break
            again, took, asleep = self._run(item, nextitem)
            if not all(report.passed for report in again):
                own = LIMIT_SECONDS  # what it shares is as it left it: it cannot be measured again
                break
            reports, own, slept = (again, took, asleep) if took < own else (reports, own, slept)
        self._note(item.nodeid, own)
        slow = own > LIMIT_SECONDS * _ERROR or slept > LIMIT_SECONDS * _ERROR_OF_SLEEP
        for report in reports:
            if report.when == "call" and report.passed and slow:
                report.outcome = "failed"
                report.longrepr = _WHAT_TO_DO.format(own=own, limit=LIMIT_SECONDS)
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        began, before = self._read(), self._shared
        try:
            return (yield)
        finally:  # what is made within it counts once
            self._shared = before.more(self._read().less(began))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        if nextitem is None or nextitem.path != item.path:  # what is shared ends as well
            self._at_end = self._read()
        return (yield)

    def _run(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> tuple[list[pytest.TestReport], float, float]:
        self._shared, self._at_end = Reading(), None
        began = self._read()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        spent = (self._at_end or self._read()).less(began).less(self._shared)
        own = spent.wall if spent.wall <= LIMIT_SECONDS else spent.own(self._slowness())
        return reports, own, spent.slept

    def _slowness(self) -> Slowness:
        computed, wall = _sample()
        self._fastest = min(self._fastest, computed)
        return Slowness(computed / self._fastest, wall / self._fastest)

    def _read(self) -> Reading:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return Reading(
            time.perf_counter(), time.process_time(), used.ru_utime + used.ru_stime, _delayed(), self._slept
        )

    def _noted(self, wait: Callable[..., Any], seconds: Callable[[tuple[Any, ...]], float | None]) -> Any:
        """Something that waits, such that it is noted how long, where the clock ends it."""

        def noted(*given: Any, **named: Any) -> Any:
            begun = time.perf_counter()
            result = wait(*given, **named)
            asked = seconds((*given, *named.values())) or 0.0
            if (
                asked >= _LONG_SECONDS
                and not result
                and threading.current_thread() is threading.main_thread()
            ):
                self._slept += min(asked, time.perf_counter() - begun)
            return result

        return noted

    def _note(self, test: str, own: float) -> None:
        self.slowest[test] = own
        if len(self.slowest) > 20:
            del self.slowest[min(self.slowest, key=lambda known: self.slowest[known])]


def is_quick(item: pytest.Item) -> bool:
    """Whether it is of `make test`, and draws as many examples as there."""
    return EXAMPLES <= _FEW_EXAMPLES and not any(map(item.get_closest_marker, ("system", "nightly")))


def _sample() -> tuple[float, float]:
    """How long the same work takes, in seconds of a processor, and as they pass."""
    began, computed = time.perf_counter(), time.thread_time()
    total = 0
    for number in range(_SAMPLE):
        total += number
    return time.thread_time() - computed, time.perf_counter() - began


def _time_out(given: tuple[Any, ...]) -> float | None:
    """Of the arguments of `Condition.wait`."""
    return given[1] if len(given) > 1 else None


def _delayed() -> float:
    """Nothing where the kernel counts no delays: all that passes is a test's own there."""
    with suppress(OSError, ValueError):
        return int(_OF_THE_MAIN_THREAD.read_text().split()[1]) / 1e9
    return 0.0
