"""SIGTERM ends a real enforcer within 2 seconds, whatever it waits for: engine, store, or a plan."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from ovirt_placement.store.enforcer.intents import Store
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server, serve
from tests.builders import APART, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.service.test_process import COMMAND
from tests.placement.inventory.running import Service
from tests.proxy.running import eventually
from tests.scenarios.stage import START

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

#: What is promised.
PROMISED_SECONDS = 2.0
SMALL = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"))


@contextmanager
def running(file: Path, ready: bool = True) -> Iterator[Service]:
    """The installed command: how Python ends is part of the promise."""
    words = [COMMAND, "run", "--config", str(file)]
    with Service(words, file.with_name("enforcer.log"), os.environ) as daemon:
        try:
            if ready:
                assert daemon.stdout is not None
                assert daemon.stdout.readline().startswith("ovirt-enforcer: watching "), daemon.log
            yield daemon
        finally:
            daemon.kill()


@contextmanager
def hung() -> Iterator[tuple[str, list[socket.socket]]]:
    """An address where every connection is accepted and none is answered; with those that were."""
    taken: list[socket.socket] = []
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def accept() -> None:
            with suppress(OSError):
                while True:
                    taken.append(listening.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}", taken
        listening.shutdown(socket.SHUT_RDWR)
    for one in taken:
        one.close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = serve(Engine.from_snapshot(SMALL, clock=START, settings=PROMPT))
    yield server
    server.close()


def seconds_to_end(daemon: subprocess.Popen[Any]) -> float:
    began = time.monotonic()
    daemon.terminate()
    assert daemon.wait(30) == 0
    return time.monotonic() - began


def test_while_the_engine_hangs(tmp_path: Path) -> None:
    with hung() as (address, taken):
        file = write_configuration(tmp_path, f"http://{address}/ovirt-engine/api")
        with running(file, ready=False) as daemon:
            eventually(lambda: taken)
            assert seconds_to_end(daemon) < PROMISED_SECONDS


def test_while_the_engine_hangs_that_has_answered_until_now(server: Server, tmp_path: Path) -> None:
    more = "[enforcer]\ninterval_seconds = 0.2\n"
    with running(write_configuration(tmp_path, server.api_url, more=more)) as daemon:
        eventually(lambda: "every rule is satisfied" in daemon.log)
        hanging = Disturbance(delay_seconds=4, times=1000)
        server.disturbances.add(hanging)
        eventually(lambda: server.disturbances.waiting != [hanging])
        assert seconds_to_end(daemon) < PROMISED_SECONDS
    server.disturbances.clear()


def test_while_postgresql_hangs(server: Server, tmp_path: Path) -> None:
    with hung() as (address, taken):
        file = write_configuration(tmp_path, server.api_url, store_url=f"postgresql://me@{address}/placement")
        with running(file, ready=False) as daemon:
            eventually(lambda: taken)
            assert seconds_to_end(daemon) < PROMISED_SECONDS


def test_while_nobody_empties_its_log(server: Server, tmp_path: Path) -> None:
    """What it logs goes into a pipe that is full."""
    file = write_configuration(tmp_path, server.api_url)
    empties, fills = os.pipe()
    os.set_blocking(fills, False)
    with suppress(BlockingIOError):
        while True:
            os.write(fills, b"#" * 4096)
    os.set_blocking(fills, True)
    with subprocess.Popen([COMMAND, "run", "--config", str(file)], stderr=fills) as daemon:
        try:
            eventually(lambda: (tmp_path / "store.db").exists())
            assert seconds_to_end(daemon) < PROMISED_SECONDS
        finally:
            daemon.kill()
    for end in (empties, fills):
        os.close(end)


def test_while_somebody_keeps_the_store_locked(server: Server, tmp_path: Path) -> None:
    file = write_configuration(tmp_path, server.api_url)
    store = tmp_path / "store.db"
    made = Store(f"sqlite:///{store}", engine="default")
    made.open_intents()
    made.close()
    locking = sqlite3.connect(store, isolation_level=None)
    locking.execute("BEGIN IMMEDIATE")
    with running(file) as daemon:
        assert seconds_to_end(daemon) < PROMISED_SECONDS
    locking.close()


@pytest.mark.system
def test_while_a_plan_is_made(tmp_path: Path) -> None:
    """A large cluster, and the solver of the optimal strategy at work."""
    random = Random(7)
    names = [f"v{number}" for number in range(600)]
    hosts = [f"h{number}" for number in range(60)]
    state = snapshot(
        *(host(name, free_mb=4096) for name in hosts),
        *(vm(name, random.choice(hosts)) for name in names),
        *(group(f"g{number}", APART, " ".join(random.sample(names, 20))) for number in range(80)),
    )
    server = serve(Engine.from_snapshot(state, clock=START, settings=PROMPT))
    more = '[enforcer]\nstrategy = "optimal"\nplanning_seconds = 60\n'
    with running(write_configuration(tmp_path, server.api_url, more=more)) as daemon:
        children = partial(psutil.Process(daemon.pid).children, recursive=True)
        # A planner is nice: on a busy machine it gets a twentieth of a core.
        eventually(lambda: any(map(busy, children())), seconds=300.0)
        planning = children()
        assert seconds_to_end(daemon) < PROMISED_SECONDS
    eventually(lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in planning))
    server.close()


def busy(process: psutil.Process) -> bool:
    """Whether it has loaded what planning needs, and has been at work for a while."""
    with suppress(psutil.NoSuchProcess):
        return bool(process.nice() > os.nice(0) and process.cpu_times().user > 1.0)
    return False
