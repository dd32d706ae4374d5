"""Who may use which worker next, when a start is tried again, and when a unit is cut off."""

import asyncio
import json
import os
import socket
from collections import Counter
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_scheduler_proxy.pool import Pool
from ovirt_scheduler_proxy.processes import Cause, Worker
from ovirt_scheduler_proxy.scheduler import Breakers
from ovirt_scheduler_proxy.settings import PluginFolder, Workers
from ovirt_scheduler_proxy.worker.kernel import pack
from tests.clock import Clock
from tests.examples import examples

UNITS = "uvw"
#: A wish for a worker, the return of one (well, or gone), a wish given up, one that ends idle.
STEPS = st.lists(
    st.tuples(
        st.sampled_from([*["ask"] * 5, "return", "return", "lose", "withdraw", "end"]), st.sampled_from(UNITS)
    ),
    min_size=3,
    max_size=25,
)
MOST = 4


class StubWorker(Worker):
    """Stands for a process: this end of its connection is closed when it is killed."""

    far: socket.socket

    def kill(self) -> None:
        self.far.close()


class StubZygote:
    """Starts workers of which each is ready at once."""

    open = True
    modules = [{"units": [{"kinds": ["filter"]}] * 9, "shareable": True, "error": None}]

    def __init__(self) -> None:
        self.control, self._far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.setblocking(False)
        self.workers: dict[int, StubWorker] = {}
        self._pids = count(2**30)

    def spawn(self, eager: bool) -> None:
        self._far.send(json.dumps({"event": "spawned", "pid": next(self._pids)}).encode())

    def end(self, worker: StubWorker) -> None:
        worker.kill()
        self._far.send(json.dumps({"event": "ended", "pid": worker.pid, "status": 0}).encode())

    def receive(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.control.recv(4096))
        if event["event"] == "spawned":
            near, far = socket.socketpair()
            worker = StubWorker(event["pid"], *(os.open(os.devnull, os.O_RDONLY) for _ in range(2)))
            self.workers[worker.pid], worker.far = worker, far
            far.send(pack(b'{"ready": true}'))
            event |= {"worker": worker, "connection": near}
        return event

    def close(self) -> None:
        for end in (self.control, self._far, *(worker.far for worker in self.workers.values())):
            end.close()


async def play(steps: list[tuple[str, str]]) -> None:
    """No unit holds more than two workers, and none rests while a unit waits that may have one."""
    zygote: Any = StubZygote()
    pool = Pool(PluginFolder("/"), Workers(warm=2, most=MOST), zygote)
    held: list[tuple[str, Worker]] = []
    waiting: dict[asyncio.Task[Worker], str] = {}
    for what, unit in steps:
        mine = [one for one in held if one[0] == unit]
        if what == "ask":
            waiting[asyncio.create_task(pool.lend(unit))] = unit
        elif what in ("return", "lose") and mine:
            held.remove(mine[0])
            (pool.give_back if what == "return" else pool.discard)(*mine[0])
            if what == "lose":
                zygote.end(mine[0][1])
        elif what == "withdraw" and waiting:
            task = next(reversed(waiting))
            task.cancel()
            with suppress(asyncio.CancelledError):
                held.append((waiting[task], await task))
            del waiting[task]
        elif what == "end":
            lent = {worker.pid for _, worker in held}
            idle = [zygote.workers[pid] for pid in pool.workers if pid not in lent]
            for worker in idle[:1]:
                zygote.end(worker)
        for _ in range(20):
            await asyncio.sleep(0)
        held += [(waiting.pop(task), task.result()) for task in [*waiting] if task.done()]
        of = Counter(name for name, _ in held)
        assert max(of.values(), default=0) <= 2
        assert len({worker.pid for _, worker in held}) == len(held) <= MOST
        assert len(held) == MOST or all(of[name] == 2 for name in waiting.values()), "a unit waits in vain"
    for task in waiting:
        task.cancel()
    await pool.close()


@settings(max_examples=examples(100))
@given(STEPS)
def test_a_unit_waits_only_for_its_own_workers_or_while_all_are_lent(steps: list[tuple[str, str]]) -> None:
    asyncio.run(play(steps))


class RefusingZygote(StubZygote):
    """Starts no worker."""

    def spawn(self, eager: bool) -> None:
        self._far.send(json.dumps({"event": "refused", "error": "no memory"}).encode())


def test_what_fails_at_once_counts_once_and_each_failure_in_a_row_doubles_the_delay(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def wait_for_failures() -> None:
        zygote: Any = RefusingZygote()
        pool = Pool(PluginFolder("/"), Workers(warm=3, most=MOST), zygote)
        while len(caplog.records) < 2:
            await asyncio.sleep(0.01)
        await pool.close()

    asyncio.run(wait_for_failures())
    assert [record.getMessage() for record in caplog.records] == [
        f"no new worker for /: no memory; next try in {seconds} s" for seconds in ("0.1", "0.2")
    ]


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
