"""Who may use which worker next, and when a start is tried again."""

from __future__ import annotations

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
from ovirt_scheduler_proxy.processes import Worker
from ovirt_scheduler_proxy.settings import PluginFolder, Workers
from ovirt_scheduler_proxy.worker.kernel import pack
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
