"""Plays a scenario: the real daemon, a simulated engine behind real HTTP, a real store, a simulated clock.

A scenario is a folder: README.md shows the story, state.json is the start, story.toml says what happens when,
and decisions.log is what the enforcer is expected to say, with simulated seconds.
"""

import logging
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy

from ovirt_enforcer.notifications import Notifications
from ovirt_enforcer.service.daemon import Daemon, Watcher
from ovirt_enforcer.service.reading import Parts
from ovirt_enforcer.watchers.engine_watch import DrainWatch
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.dialogues import PATIENCE_SECONDS
from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.engine.events import read_events
from ovirt_placement.inventory import client as inventory
from ovirt_placement.model import Snapshot, state_file
from ovirt_service.daemon import Progress
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server, serve
from tests.configuration import write_configuration
from tests.enforcer.stand_ins import PlannersHere
from tests.scenarios.happenings import Happenings

#: Longer than any story: nobody else wants to lead.
LEASE_SECONDS = 1e6
#: The simulated start; only differences matter.
START = datetime(2026, 1, 1, tzinfo=UTC)
#: The clock of a scenario stands still while an answer comes, however long a busy machine takes.
_PATIENCE_SECONDS = 10.0
_START_JULIAN_DAY = 2440587.5 + START.timestamp() / 86400


class Happening(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that befalls the engine; `what` is a command of `Happenings`."""

    at: float
    what: str
    arguments: dict[str, Any] = {}


class Story(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    #: Simulated seconds until the curtain.
    until: float
    #: The [enforcer] section.
    enforcer: dict[str, Any]
    #: What the simulated engine does otherwise than `PROMPT` says.
    engine: dict[str, Any] = {}
    happenings: tuple[Happening, ...] = ()


class Stage(Happenings):
    """One scenario under way."""

    #: So often the engine is asked for events, in simulated seconds.
    events_seconds = 2.0

    def __init__(self, story: Story, engine: Engine, server: Server, folder: Path) -> None:
        super().__init__(engine, server, folder, story.enforcer)
        self.now = 0.0
        #: Whether the daemon is to end before the curtain.
        self.ended = False
        self._story = story
        self._waiting = sorted(story.happenings, key=lambda happening: happening.at)

    def perform(self, daemon: Daemon, connection: EngineConnection) -> None:
        """Let the daemon run until the curtain."""
        self._daemon, self._connection, self.ended = daemon, connection, False
        self._reported = self._last_event()
        daemon.run(self.sleep)

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> bool:
        """Let simulated time pass and the story go on, until the daemon is due; whether it is at its end."""
        until = min(self.now + max(seconds, 0.1), self._story.until)
        while self.now < until and not self.ended:
            self.advance(min(self.now + self.events_seconds, until))
            self._report_events()
            if self._daemon.due:
                break
        return self.over or self.ended

    @property
    def over(self) -> bool:
        return self.now >= self._story.until

    def _report_events(self) -> None:
        """Let the daemon hear of what the engine has logged, if the engine answers."""
        if self._last_event() > self._reported:
            with suppress(EngineAway):
                events = read_events(self._connection, after=self._reported, at_most=500)
                self._reported = max(event.id for event in events)
                self._daemon.happened(events)

    def _last_event(self) -> int:
        return max((event.id for event in self.engine.queries.events()), default=0)

    def advance(self, until: float) -> None:
        """Let simulated time pass up to this moment, and what befalls the engine until then."""
        while self._waiting and self._waiting[0].at <= until:
            happening = self._waiting.pop(0)
            self._advance(happening.at)
            self.log.append(f"{self.now:6.0f} * {happening.what} {_words(happening.arguments)}".rstrip())
            self.befall(happening)
        self._advance(until)

    def befall(self, happening: Happening) -> None:
        self.say(self.act(happening.what, **happening.arguments) or "", "> ")

    def _advance(self, until: float) -> None:
        self.engine.advance(max(0.0, until - self.now))
        self.now = max(self.now, until)

    def say(self, text: str, mark: str = "") -> None:
        """Write down what is said now; what differs from run to run is left out."""
        self.log.extend(f"{self.now:6.0f} {mark}{line}".rstrip() for line in self.same(text).splitlines())

    def placement(self) -> Iterator[str]:
        for vm in sorted(self.engine.snapshot().vms, key=lambda vm: vm.name):
            yield f"{self.now:6.0f} = {vm.name} {vm.status} {vm.host or '-'}"


def play(scenario: Path, folder: Path) -> list[str]:
    """Play a scenario and return what was said: decisions, happenings (*) and where VMs ended (=)."""
    story = msgspec.convert(tomllib.loads((scenario / "story.toml").read_text()), Story)
    settings = msgspec.structs.replace(PROMPT, **story.engine)
    engine = Engine.from_snapshot(state_file.load(scenario / "state.json"), clock=START, settings=settings)
    with closing(serve(engine)) as server:
        stage = Stage(story, engine, server, folder)
        stage.advance(0.0)
        config = configured(folder, server.api_url, story.enforcer)
        with (
            EngineConnection(config.engine) as connection,
            _logged(stage),
            simulated_time(stage.clock),
            daemon_of(config, connection, stage.clock, patience_seconds=_PATIENCE_SECONDS) as daemon,
        ):
            stage.perform(daemon, connection)
    return [*stage.log, *stage.placement()]


def configured(folder: Path, url: str, enforcer: dict[str, Any]) -> Config:
    """A configuration with this [enforcer] section; plans are greedy ones, which no slow machine changes."""
    sections = tomllib.loads(write_configuration(folder, url).read_text())
    return Config({**sections, "enforcer": {"strategy": "greedy", **enforcer}}, "the story")


@contextmanager
def daemon_of(
    config: Config,
    connection: EngineConnection,
    clock: Callable[[], float],
    read: Callable[[], Snapshot] | None = None,
    goes_on: Callable[[], bool] = lambda: True,
    watchers: Sequence[Watcher] = (),
    patience_seconds: float = PATIENCE_SECONDS,
    notifications: Notifications = Notifications(),  # noqa: B008 - nobody is notified
) -> Iterator[Daemon]:
    """A daemon with all its parts, which plans at once, and for which time passes by `clock`."""
    parts = Parts(
        config,
        connection,
        PlannersHere(),
        Progress(inf),
        lambda: not goes_on(),
        "the only one",
        clock=clock,
        notifications=notifications,
        lease_seconds=LEASE_SECONDS,
        time_of_day=lambda: START + timedelta(seconds=clock()),
        patience_seconds=patience_seconds,
    )
    whole: Callable[[], Snapshot] = partial(inventory.snapshot, config=config, max_age=0.0)
    try:
        drains = DrainWatch(Notifications(), clock, 2 * parts.settings.interval_seconds)
        yield Daemon(read or whole, parts, (parts.executor, parts.recorder, drains, *watchers))
    finally:
        parts.stores.close()


@contextmanager
def _logged(stage: Stage) -> Iterator[None]:
    """Write down what the enforcer logs."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            stage.say(record.getMessage())

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
def simulated_time(clock: Callable[[], float]) -> Iterator[None]:
    """Let the store's database report simulated time."""

    def on_connect(connection: Any, _: object) -> None:
        connection.create_function("julianday", 1, lambda _: _START_JULIAN_DAY + clock() / 86400)

    sqlalchemy.event.listen(sqlalchemy.Engine, "connect", on_connect)
    try:
        yield
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "connect", on_connect)


def _words(arguments: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in arguments.items())
