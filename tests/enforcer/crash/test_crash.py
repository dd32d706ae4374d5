"""Killed at any point and started again, the enforcer repairs the same with the same migrations."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TextIO

import ovirtsdk4
import pytest

from ovirt_enforcer.gates import NEVER_ASKED
from ovirt_placement import statefile
from ovirt_placement.model import Snapshot
from ovirt_placement.store import Store
from tests.builders import APART, TOGETHER, group, host, snapshot, vm
from tests.enforcer.crash import launcher

#: Processes with everything imported, for a start that takes no time.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([launcher.__name__])

PASSWORD = "password"
#: Simulated seconds a second; a migration then takes some 140 ms.
TIME_SCALE = "25"
CONFIGURATION = """\
[engine]
url = "{url}/ovirt-engine/api"
username = "admin@internal"
password_file = "{folder}/password"
[inventory]
directory = "{folder}/inventory"
[store]
url = "sqlite:///{folder}/store.db"
[enforcer]
mode = "enforce"
interval_seconds = 0.2
poll_seconds = 0.03
settle_seconds = 0.2
"""
HOLDS = "every hard VM rule holds"
#: So many parts are tested side by side.
PARTS = 4

ONE_REPAIR = snapshot(
    host("h1"), host("h2"), vm("a", "h1"), vm("b", "h2", migratable=False), group("pair", TOGETHER, "a b")
)
CLOSURE = snapshot(
    host("h1", free_mb=512),
    host("h2", free_mb=512),
    host("h3"),
    vm("a", "h1"),
    vm("b", "h2"),
    vm("c", "h3"),
    group("pair", TOGETHER, "a b"),
    group("others", APART, "c"),
)


class World:
    """A simulator process, and the enforcer processes that come and go."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.points = folder / "points"
        (folder / "password").touch(mode=0o600)
        (folder / "password").write_text(PASSWORD)
        self.configuration = folder / "ovirt-placement.toml"
        self.configuration.write_text(CONFIGURATION.format(url=url, folder=folder))

    def enforce(self, fatal: int = 0) -> str:
        """Run an enforcer until it is killed at the fatal point, or until all rules hold; what it said."""
        arguments = ["run", "--config", str(self.configuration)]
        with running(launcher.run_enforcer, self.points, fatal, arguments) as (process, output):
            said = []
            for line in output:
                said.append(line)
                if HOLDS in line and not fatal:
                    process.terminate()
            process.join()
            text = "".join(said)
            assert process.exitcode == (-signal.SIGKILL if fatal else 0), text
            return text

    def migrations(self) -> list[str]:
        """What the engine's events say of migrations that began and ended."""
        with ovirtsdk4.Connection(f"{self.url}/ovirt-engine/api", "admin@internal", PASSWORD) as connection:
            events = connection.system_service().events_service().list()
        found = sorted(events, key=lambda event: int(event.id))
        return [f"{event.code} {event.vm.name}" for event in found if event.code in (62, 63, 64, 65, 120)]

    def remembered(self) -> list[str]:
        """What the store knows of migrations that the engine was asked for."""
        store = Store(f"sqlite:///{self.folder}/store.db")
        assert not store.open_intents()
        found = [intent for intent in store.history(within_seconds=600) if intent.error != NEVER_ASKED]
        store.close()
        return sorted(f"{intent.vm} to {intent.target}: {intent.state}" for intent in found)

    def placement(self) -> dict[str, str]:
        with ovirtsdk4.Connection(f"{self.url}/ovirt-engine/api", "admin@internal", PASSWORD) as connection:
            vms = connection.system_service().vms_service().list()
        return {vm.name: f"{vm.status.value} {vm.host.id}" for vm in vms}


@contextmanager
def world(folder: Path, state: Snapshot) -> Iterator[World]:
    folder.mkdir()
    (folder / "state.json").write_bytes(statefile.dumps(state))
    arguments = ["run", "--state", str(folder / "state.json"), "--listen", "127.0.0.1:0"]
    with running(launcher.run_simulator, [*arguments, "--time-scale", TIME_SCALE]) as (process, output):
        ready = next(line for line in output if "listening on" in line)
        yield World(folder, ready.split()[-1])
        process.terminate()
        process.join()
        assert process.exitcode == 0


@contextmanager
def running(target: Any, *arguments: object) -> Iterator[tuple[BaseProcess, TextIO]]:
    """A process and what it prints; the process is gone afterwards."""
    ours, theirs = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=target, args=(theirs, *arguments))
    process.start()
    theirs.close()
    try:
        with read(ours) as output:
            yield process, output
    finally:
        process.kill()
        process.join()
        process.close()


@contextmanager
def read(ours: Connection) -> Iterator[TextIO]:
    with ours, open(ours.fileno(), closefd=False) as output:
        yield output


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("state", [ONE_REPAIR, CLOSURE], ids=["one migration", "a closure"])
def test_killed_at_any_point_the_cluster_ends_the_same(state: Snapshot, part: int, tmp_path: Path) -> None:
    with world(tmp_path / "undisturbed", state) as undisturbed:
        undisturbed.enforce()
        points = undisturbed.points.read_text().splitlines()
        expected = (undisturbed.placement(), sorted(undisturbed.migrations()), undisturbed.remembered())
    assert any("/migrate" in point for point in points)

    # What happens before the first intent and after the last is the same for any repair.
    written = [number for number, point in enumerate(points, 1) if point in ("before INSERT", "after commit")]
    first, last = (1, len(points)) if state is ONE_REPAIR else (written[2], written[-1] + 2)
    for fatal in range(first + part, last + 1, PARTS):
        with world(tmp_path / str(fatal), state) as disturbed:
            before = disturbed.enforce(fatal)
            point = f"killed {disturbed.points.read_text().splitlines()[-1]}, point {fatal}"
            after = disturbed.enforce()
            ended = (disturbed.placement(), sorted(disturbed.migrations()), disturbed.remembered())
            assert ended == expected, f"{point}\n{before}\n{after}"
