"""What an administrator sees of the daemon: its state in systemd, metrics, and how soon SIGTERM ends it."""

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

import psutil
import pytest

from ovirt_enforcer.cli.main import main
from ovirt_placement.store.enforcer.intents import Store
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server, serve
from tests.builders import APART, SOFT_TOGETHER, TOGETHER, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.conftest import Ask
from tests.pages import faults, page_named_in, samples
from tests.placement.cli.documents import parsed
from tests.placement.inventory.running import Service
from tests.placement.store.conftest import Opening
from tests.processes import Forked
from tests.proxy.running import eventually
from tests.scenarios.stage import START
from tests.service.listening import systemd

pytestmark = pytest.mark.system

COMMAND = str(Path(sys.executable).with_name("ovirt-enforcer"))
#: A hard group that can be repaired, another that cannot, and a soft one that nobody repairs.
STATE = snapshot(
    host("h1"),
    host("h2", free_mb=1500),
    vm("v1", "h1"),
    vm("v2", "h2", migratable=False),
    vm("v3", "h1", needs_mb=4096),
    vm("v4", "h1", needs_mb=4096),
    group("g1", TOGETHER, "v1 v2"),
    group("g2", APART, "v3 v4"),
    group("g3", SOFT_TOGETHER, "v2 v3"),
)
ENFORCES = """
[enforcer]
mode = "enforce"
interval_seconds = 0.2
poll_seconds = 1.0
metrics = "127.0.0.1:0"
"""


class Enforcer(Forked):
    def __init__(self, file: Path, environment: Mapping[str, str]) -> None:
        words = ["run", "--config", str(file)]
        super().__init__(main, words, file.with_name("enforcer.log"), {**os.environ, **environment})


@contextmanager
def running(file: Path, environment: Mapping[str, str] = MappingProxyType({})) -> Iterator[Enforcer]:
    with Enforcer(file, environment) as process:
        try:
            assert process.stdout.readline().startswith("ovirt-enforcer: watching "), process.log
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def test_systemd_hears_that_it_is_ready_and_lives_though_nothing_is_due(file: Path, tmp_path: Path) -> None:
    with systemd(tmp_path) as listening, running(file, listening.environment(watchdog_seconds=0.3)) as daemon:
        listening.hear_until("READY=1")
        assert "READY=1" not in listening.hear_until("WATCHDOG=1", 8)
        daemon.end()
        listening.hear_until("STOPPING=1")


def test_an_engine_that_is_away_keeps_it_neither_from_being_ready_nor_alive(tmp_path: Path) -> None:
    with socket.socket() as taken, systemd(tmp_path) as listening:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/ovirt-engine/api"
        file = write_configuration(tmp_path, url)
        with running(file, listening.environment(watchdog_seconds=0.3)) as daemon:
            listening.hear_until("READY=1")
            listening.hear_until("WATCHDOG=1", 3)
            daemon.end()


def test_metrics_of_a_repair(engine: Engine, server: Server, tmp_path: Path) -> None:
    def value(name: str, *labels: str) -> float | None:
        return samples(page).get((f"ovirt_placement_enforcer_{name}", *labels))

    with running(write_configuration(tmp_path, server.api_url, more=ENFORCES)) as daemon:
        page = page_named_in(daemon.log)
        eventually(lambda: value("pending_intents") == 1 and value("cycles_total", "ok"))
        found = samples(page)
        engine.advance(60)
        eventually(lambda: value("migrations_total", "done") == 1)
        eventually(lambda: value("violations", "cluster1", "vm_affinity", "hard") == 1)
        eventually(lambda: value("repairs_achieved_total") == 1)
        assert faults(page) == ""
        with urllib.request.urlopen(page.replace("/metrics", "/healthz")) as answer:
            health = json.load(answer)
        daemon.end()
    assert found["ovirt_placement_enforcer_plans_total", "yes"] >= 1
    assert found["ovirt_placement_enforcer_violations", "cluster1", "vm_affinity", "hard"] == 2
    assert found["ovirt_placement_enforcer_violations", "cluster1", "vm_affinity", "soft"] == 1
    assert found["ovirt_placement_enforcer_leader",] == found["ovirt_placement_enforcer_lease_epoch",] == 1
    assert 0 <= found["ovirt_placement_enforcer_snapshot_age_seconds",] < 60
    assert found["ovirt_placement_enforcer_cycle_duration_seconds_count",] >= 1
    assert found["process_resident_memory_bytes",] > 0
    assert (health["status"], health["role"], health["engine_reachable"]) == ("ok", "leader", True)


#: What is promised.
PROMISED_SECONDS = 2.0


@contextmanager
def installed(file: Path, ready: bool = True) -> Iterator[Service]:
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


class Hung(NamedTuple):
    """An address where every connection is accepted and none is answered; with those that were."""

    address: str
    taken: list[socket.socket]


@pytest.fixture
def hung() -> Iterator[Hung]:
    taken: list[socket.socket] = []
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def accept() -> None:
            with suppress(OSError):
                while True:
                    taken.append(listening.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        yield Hung(f"127.0.0.1:{listening.getsockname()[1]}", taken)
        listening.shutdown(socket.SHUT_RDWR)
    for one in taken:
        one.close()


def seconds_to_end(daemon: subprocess.Popen[Any]) -> float:
    began = time.monotonic()
    daemon.terminate()
    assert daemon.wait(30) == 0
    return time.monotonic() - began


@pytest.mark.timing
def test_while_the_engine_hangs(hung: Hung, tmp_path: Path) -> None:
    file = write_configuration(tmp_path, f"http://{hung.address}/ovirt-engine/api")
    with installed(file, ready=False) as daemon:
        eventually(lambda: hung.taken)
        assert seconds_to_end(daemon) < PROMISED_SECONDS


@pytest.mark.timing
def test_while_the_engine_hangs_that_has_answered_until_now(server: Server, tmp_path: Path) -> None:
    more = "[enforcer]\ninterval_seconds = 0.2\n"
    with installed(write_configuration(tmp_path, server.api_url, more=more)) as daemon:
        eventually(lambda: "Not repaired" in daemon.log)
        hanging = Disturbance(delay_seconds=4, times=1000)
        server.disturbances.add(hanging)
        eventually(lambda: server.disturbances.waiting != [hanging])
        assert seconds_to_end(daemon) < PROMISED_SECONDS
    server.disturbances.clear()


@pytest.mark.timing
def test_while_postgresql_hangs(hung: Hung, server: Server, tmp_path: Path) -> None:
    url = f"postgresql://me@{hung.address}/placement"
    with installed(write_configuration(tmp_path, server.api_url, store_url=url), ready=False) as daemon:
        eventually(lambda: hung.taken)
        assert seconds_to_end(daemon) < PROMISED_SECONDS


@pytest.mark.timing
def test_while_nobody_empties_its_log(file: Path) -> None:
    """What it logs goes into a pipe that is full."""
    empties, fills = os.pipe()
    os.set_blocking(fills, False)
    with suppress(BlockingIOError):
        while True:
            os.write(fills, b"#" * 4096)
    os.set_blocking(fills, True)
    with subprocess.Popen([COMMAND, "run", "--config", str(file)], stderr=fills) as daemon:
        try:
            eventually(lambda: file.with_name("store.db").exists())
            assert seconds_to_end(daemon) < PROMISED_SECONDS
        finally:
            daemon.kill()
    for end in (empties, fills):
        os.close(end)


@pytest.mark.timing
def test_while_somebody_keeps_the_store_locked(file: Path, opening: Opening) -> None:
    opening(Store).open_intents()
    with closing(sqlite3.connect(file.with_name("store.db"), isolation_level=None)) as locking:
        locking.execute("BEGIN IMMEDIATE")
        with installed(file) as daemon:
            assert seconds_to_end(daemon) < PROMISED_SECONDS


@pytest.mark.timing
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
    with installed(write_configuration(tmp_path, server.api_url, more=more)) as daemon:
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


QUICK = "interval_seconds = 0.2\npoll_seconds = 0.2\nlease_seconds = 0.6\nbreaker_failures = 1\n"


class Status:
    """What `ovirt-enforcer status` says of an enforcer in a mode."""

    def __init__(self, ask: Ask, server: Server, folder: Path) -> None:
        self._ask, self._url, self._folder = ask, server.api_url, folder

    def configure(self, mode: str) -> Path:
        return write_configuration(self._folder, self._url, more=f'[enforcer]\nmode = "{mode}"\n{QUICK}')

    def text(self) -> str:
        return self._ask("status --timeout 5").out

    def data(self) -> Any:
        return parsed(self._ask("status --timeout 5 --json").out)

    def enforcer(self) -> Any:
        return self.data()["enforcer"]

    def modes(self) -> tuple[str, str | None]:
        found = self.enforcer()
        return found["mode"], found["configured_mode"]


@pytest.fixture
def status(ask: Ask, server: Server, tmp_path: Path) -> Status:
    return Status(ask, server, tmp_path)


def test_the_last_cycle_is_reported_with_what_it_failed_of(status: Status, server: Server) -> None:
    file = status.configure("observe")
    assert status.enforcer()["last_cycle"] is None
    with running(file) as process:
        eventually(lambda: (status.enforcer()["last_cycle"] or {}).get("error", "") is None)
        assert "s ago, successful." in status.text()
        server.close()
        eventually(lambda: (status.enforcer()["last_cycle"] or {})["error"] is not None)
        assert re.search("Last cycle: .*s ago, failed: ", status.text())
        assert "the enforcer's last cycle failed" in status.data()["reasons"]
        process.end()
    # What it ended with is still known, and that nobody leads.
    found = status.enforcer()
    assert (found["leader"], found["last_cycle"]["error"] is None) == (None, False)


def test_an_open_breaker_and_what_the_engine_refused_are_reported(
    status: Status, server: Server, ask: Ask
) -> None:
    server.disturbances.add(Disturbance(method="POST", path="/migrate", drop="request", times=None))
    with running(status.configure("enforce")) as process:
        eventually(lambda: bool(status.enforcer()["breakers"]))
        (breaker,) = status.enforcer()["breakers"]
        assert breaker["cluster"]["name"] == "cluster1"
        assert breaker["reason"].startswith("1 migration failed here of late")
        assert "Breaker open in cluster cluster1: " in status.text()
        assert "cluster cluster1: the breaker is open: migrations failed there" in status.data()["reasons"]
        server.disturbances.clear()
        assert ask("resume").status == 0
        eventually(lambda: not status.enforcer()["breakers"])
        process.end()


DIFFERS = "The configuration here says mode enforce: it takes effect when ovirt-enforcer is restarted.\n"
CHANGED = "leads with changed settings: mode enforce, before observe"


def test_a_mode_in_the_file_counts_and_is_recorded_once_it_leads_with_it(status: Status, ask: Ask) -> None:
    file = status.configure("observe")
    with running(file) as process:
        eventually(lambda: status.enforcer()["last_cycle"] is not None)
        status.configure("enforce")
        assert status.modes() == ("observe", "enforce")
        text = status.text()
        assert "Enforcer: mode observe, led by " in text
        assert DIFFERS in text
        assert "changed settings" not in ask("history --who").out
        process.end()
    assert status.modes() == ("enforce", "enforce")  # nobody leads: what it will be
    with running(file) as process:
        eventually(lambda: CHANGED in ask("history --who").out)
        assert status.modes() == ("enforce", "enforce")
        assert "here says mode" not in status.text()
        eventually(lambda: CHANGED in process.log)
        process.end()
