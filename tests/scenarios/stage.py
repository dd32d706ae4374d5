"""Plays a scenario: the real daemon, a simulated engine behind real HTTP, a real store, a simulated clock.

A scenario is a folder: README.md tells the story, state.json is the start, story.toml says what happens when,
and decisions.log is what the enforcer is expected to say, with simulated seconds.
"""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy

from ovirt_enforcer.migrating.executor import Executor
from ovirt_enforcer.service.daemon import Daemon
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement import inventory
from ovirt_placement.config import load
from ovirt_placement.engine.connection.client import connect
from ovirt_placement.model import Snapshot, state_file
from ovirt_placement.store.intents import Store
from ovirt_simulator.core.affinity_commands import AffinityGroupEdit
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.faults import MigrationFault
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.disturbances import Disturbance
from ovirt_simulator.http.server import Server, serve
from tests.configuration import write_configuration

#: The simulated start; only differences matter.
START = datetime(2026, 1, 1, tzinfo=UTC)
_START_JULIAN_DAY = 2440587.5 + START.timestamp() / 86400


class Happening(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that befalls the engine; `what` is a command of `Stage`."""

    at: float
    what: str
    arguments: dict[str, Any] = {}


class Story(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    #: Simulated seconds until the curtain.
    until: float
    #: The [enforcer] section.
    enforcer: EnforcerSettings
    happenings: tuple[Happening, ...] = ()


class Stage:
    """One scenario under way."""

    def __init__(self, story: Story, engine: Engine, server: Server) -> None:
        self.engine = engine
        self.server = server
        self.now = 0.0
        self._story = story
        self._waiting = sorted(story.happenings, key=lambda happening: happening.at)
        self.log: list[str] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> bool:
        """Let simulated time pass and the story go on; whether it has come to its end."""
        self.advance(min(self.now + max(seconds, 0.1), self._story.until))
        return self.now >= self._story.until

    def advance(self, until: float) -> None:
        """Let simulated time pass up to this moment, and what befalls the engine until then."""
        while self._waiting and self._waiting[0].at <= until:
            happening = self._waiting.pop(0)
            self._advance(happening.at)
            self.log.append(f"{self.now:6.0f} * {happening.what} {_words(happening.arguments)}".rstrip())
            command: Callable[..., None] = getattr(self, happening.what)
            command(**happening.arguments)
        self._advance(until)

    def _advance(self, until: float) -> None:
        self.engine.advance(until - self.now)
        self.now = until

    def fail_host(self, host: str) -> None:
        self.engine.hosts.fail(host)

    def fail_migrations(self, **fault: Any) -> None:
        count, vm = fault.pop("count", 1), fault.pop("vm", None)
        self.engine.faults.next_migrations(MigrationFault(**fault), count=count, vm_id=vm)

    def add_group(self, name: str, cluster: str, together: bool, vms: list[str]) -> None:
        rule = {"enabled": True, "positive": together, "enforcing": True}
        edit = {"name": name, "vms_rule": rule, "vms": vms}
        self.engine.affinity_groups.add(cluster, msgspec.convert(edit, AffinityGroupEdit))

    def edit_group(self, group: str, vms: list[str]) -> None:
        self.engine.affinity_groups.edit(group, msgspec.convert({"vms": vms}, AffinityGroupEdit))

    def migrate_vm(self, vm: str, host: str) -> None:
        self.engine.vms.migrate(vm, host_id=host)

    def disturb(self, **disturbance: Any) -> None:
        self.server.disturbances.add(msgspec.convert(disturbance, Disturbance))

    def engine_returns(self) -> None:
        self.server.disturbances.clear()

    def stop_vm(self, vm: str) -> None:
        self.engine.vms.stop(vm)

    def placement(self) -> Iterator[str]:
        for vm in sorted(self.engine.snapshot().vms, key=lambda vm: vm.name):
            yield f"{self.now:6.0f} = {vm.name} {vm.status} {vm.host or '-'}"


def play(scenario: Path, folder: Path) -> list[str]:
    """Play a scenario and return what was said: decisions, happenings (*) and where VMs ended (=)."""
    story = msgspec.convert(tomllib.loads((scenario / "story.toml").read_text()), Story)
    engine = Engine.from_snapshot(state_file.load(scenario / "state.json"), clock=START, settings=PROMPT)
    server = serve(engine)
    stage = Stage(story, engine, server)
    stage.advance(0.0)
    try:
        config = load(write_configuration(folder, server.api_url), {})
        store = Store(config.store.url, engine="default", patience_seconds=5)
        with connect(config.engine) as connection, _logged(stage), _simulated_time(stage):
            executor = Executor(connection, store, story.enforcer, stage.clock)
            read: Callable[[], Snapshot] = partial(inventory.snapshot, config=config, max_age=0.0)
            Daemon(story.enforcer, read, store, executor, stage.clock).run(stage.sleep)
        store.close()
    finally:
        server.close()
    return [*stage.log, *stage.placement()]


@contextmanager
def _logged(stage: Stage) -> Iterator[None]:
    """Write down what the enforcer logs; ids that differ from run to run are left out."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = re.sub(r" \([0-9a-f]{32}(-\d+)?\)", "", record.getMessage())
            text = text.replace(stage.server.url, "ENGINE")
            stage.log.extend(f"{stage.now:6.0f} {line}".rstrip() for line in text.splitlines())

    logger = logging.getLogger("ovirt_enforcer")
    handler, level = Handler(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextmanager
def _simulated_time(stage: Stage) -> Iterator[None]:
    """Let the store's database tell simulated time."""

    def on_connect(connection: Any, _: object) -> None:
        connection.create_function("julianday", 1, lambda _: _START_JULIAN_DAY + stage.now / 86400)

    sqlalchemy.event.listen(sqlalchemy.Engine, "connect", on_connect)
    try:
        yield
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "connect", on_connect)


def _words(arguments: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in arguments.items())
