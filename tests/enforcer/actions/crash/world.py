"""A simulator and enforcers in processes of their own, which may be killed anywhere; and what they leave."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TextIO

import ovirtsdk4

from ovirt_placement.model import Snapshot, state_file
from ovirt_placement.store.causes import Cause
from ovirt_placement.store.intents import Store
from ovirt_placement.store.keys import KeyStore
from tests.configuration import PASSWORD, write_configuration
from tests.enforcer.actions.crash import launcher
from tests.placement.databases import database
from tests.processes import PROCESSES

#: Simulated seconds a second; a migration then takes some 140 ms.
TIME_SCALE = "25"
EAGER = """\
[enforcer]
mode = "enforce"
interval_seconds = 0.2
poll_seconds = 0.03
settle_seconds = 0.2
cooldown_seconds = 0.2
events_seconds = 3600
lease_seconds = 0.6
strategy = "greedy"
"""
HOLDS = "every rule is satisfied"


def is_well(said: list[str]) -> bool:
    """Whether all rules are satisfied, and each part works again that a lease had ended for meanwhile.

    A busy machine does not always renew so short a lease in time.
    """
    failing = set()
    for line in said:
        level, _, text = line.strip().partition(" ")
        if level == "WARNING" and text.endswith("another may lead now"):
            failing.add(text.partition(":")[0])
        elif text.endswith(": works again"):
            failing.discard(text.partition(":")[0])
    return any(HOLDS in line for line in said) and not failing


class World:
    """A simulator process, and the enforcer processes that come and go."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.points = folder / "points"
        self.store_url = f"sqlite:///{folder}/store.db"
        self.configuration = write_configuration(folder, f"{url}/ovirt-engine/api", more=EAGER)

    def enforce(self, fatal: int = 0) -> str:
        """Run an enforcer until it is killed at the fatal point, or all rules are satisfied; its output."""
        arguments = ["run", "--config", str(self.configuration)]
        with running(launcher.run_enforcer, self.points, fatal, arguments) as (process, output):
            said: list[str] = []
            for line in output:
                said.append(line)
                if not fatal and is_well(said):
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
        store = Store(self.store_url, engine="default")
        assert not store.open_intents()
        history = store.history(within_seconds=600)
        found = [one for one in history if one.cause not in (Cause.NEVER_ASKED, Cause.NO_TRACE)]
        store.close()
        runs = sorted(f"{vm} ran before" for vm in self.written())
        return runs + sorted(f"{intent.vm} to {intent.target}: {intent.state}" for intent in found)

    def records(self) -> dict[str, Any]:
        """What the keeper remembers."""
        store = KeyStore(self.store_url, engine="default")
        records = store.records()
        store.close()
        with database(self.store_url) as connection:
            missing = connection.exec_driver_sql("SELECT vm FROM missing_vms").scalars().all()
        return {
            "frozen": {record.vm: record.keys for record in records.frozen},
            "copies": {(copy.vm, copy.value) for copy in records.copies},
            "missing": set(missing),
        }

    def written(self) -> dict[str, float]:
        """When the frozen set of each VM was written."""
        with database(self.store_url) as connection:
            found = connection.exec_driver_sql("SELECT vm, recorded FROM frozen_keys").all()
        return dict(found)

    def placement(self) -> dict[str, str]:
        with ovirtsdk4.Connection(f"{self.url}/ovirt-engine/api", "admin@internal", PASSWORD) as connection:
            vms = connection.system_service().vms_service().list()
        return {vm.name: f"{vm.status.value} {vm.host.id}" for vm in vms}


@contextmanager
def world(folder: Path, state: Snapshot) -> Iterator[World]:
    folder.mkdir()
    (folder / "state.json").write_bytes(state_file.dumps(state))
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
