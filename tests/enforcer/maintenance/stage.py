"""A maintenance run on a simulated clock: a real daemon and store, a simulated engine behind real HTTP.

The daemon may be killed at any point: an error that nothing catches ends it there, as a process dies, and
another one goes on with what engine and store hold.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from ovirt_enforcer.log import Notice
from ovirt_placement.engine.connection.client import Session
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.store.enforcer.intents import Intent
from ovirt_placement.store.enforcer.maintenance import (
    HostPhase,
    HostProgress,
    MaintenanceRequest,
    MaintenanceRun,
    MaintenanceStore,
)
from ovirt_simulator.core.backend import PROMPT
from tests.builders import CLUSTER
from tests.enforcer.actions.bench import Bench, Settings, bench
from tests.enforcer.launching import watched
from tests.kit.notices import KeptNotices
from tests.stored import listening, run_of

SETTINGS: dict[str, Any] = {
    "mode": "enforce",
    "interval_seconds": 20,
    "cooldown_after_success_seconds": 0,
    "cooldown_seconds": 5,
}
_STEP_SECONDS = 2.0
_WRITES = ("INSERT", "UPDATE", "DELETE")


class Killed(BaseException):
    """The process is gone: no code of its own runs any more."""


class Killer:
    """Ends the daemon at the n-th commit of a write, or request, that it comes to, if ever.

    To be killed at a statement that is not committed yet, or at one that only reads, leaves the same store
    and the same engine as to be killed at the next of these points.
    """

    def __init__(self, fatal: int = 0) -> None:
        self.fatal = fatal
        self.passed: list[str] = []
        self.dead = False
        self._lock = threading.Lock()

    def reach(self, what: str) -> None:
        with self._lock:
            self.passed.append(what)
            self.dead |= len(self.passed) == self.fatal
        if self.dead:
            raise Killed(what)

    def reach_request(self, what: str) -> None:
        """One that only reads is no point."""
        if " GET " not in what:
            self.reach(what)


class Stage(Bench):
    """A cluster, and the enforcers that come and go."""

    def __init__(self, folder: Path, state: Snapshot, settings: Settings) -> None:
        how = replace(PROMPT, host_boot_seconds=8.0, host_installation_seconds=4.0)
        super().__init__(folder, state, {**SETTINGS, **settings}, how)
        self.runs = MaintenanceStore(self.config.store.url, engine=self.config.engine.name)
        #: What happens at which moments.
        self.happenings: list[tuple[float, Callable[[], object]]] = []
        #: Hard rules that were violated in some state, and how many hosts were not up at once.
        self.violated: set[tuple[str, ...]] = set()
        self.most_away = 0
        self.notified = KeptNotices()

    @property
    def notices(self) -> list[Notice]:
        """What was reported of maintenance, oldest first."""
        return [one for one in self.notified.notices if one.kind.startswith("maintenance")]

    def offer_updates(self, *hosts: str) -> None:
        for host in hosts:
            self.engine.host_upgrades.offer(host)
            self.engine.host_upgrades.check(host)
        self.engine.advance(3.0)

    def request(self, *hosts: str, **request: Any) -> None:
        wanted = MaintenanceRequest(**{"soak_seconds": 5.0, **request})
        self.runs.request(run_of(*hosts, request=wanted))

    def began(self, **request: Any) -> "Stage":
        """A run of the first two hosts is requested, for their updates."""
        self.offer_updates("h1", "h2")
        self.request("h1", "h2", **request)
        return self

    @property
    def run(self) -> MaintenanceRun:
        return self.runs.runs()[0]

    @property
    def phases(self) -> list[str]:
        return [str(one.phase) for one in self.run.hosts]

    @property
    def all_up(self) -> bool:
        return all(one.status == "up" for one in self.engine.snapshot().hosts)

    @property
    def migrations(self) -> tuple[Intent, ...]:
        """What the daemons migrated, and tried to, oldest first."""
        return self.store.history(within_seconds=1e9)

    def codes(self, host: str) -> list[int]:
        """Codes of the events that speak of a host, oldest first."""
        events = reversed(self.engine.queries.events())
        return [event.code for event in events if event.host is not None and event.host.name == host]

    def play(
        self, until: float, killer: Killer | None = None, reached: Callable[[], bool] = lambda: False
    ) -> None:
        """Let a daemon work until this moment, until the run has ended or reached something, or is killed."""
        with (
            self.enforcing(patience_seconds=2.0, notifications=self.notified) as daemon,
            _watched(killer or Killer()),
        ):
            while self.now < until and self.run.active and not reached():
                pause = daemon.cycle()
                if killer is not None and killer.dead:
                    raise Killed
                soon = self.now + max(pause, 0.5)
                while self.now < min(soon, until):
                    self._advance(min(self.now + _STEP_SECONDS, soon, until))
                    if daemon.due:
                        break

    def look(self) -> None:
        """Let another daemon look once, whatever is under way."""
        with self.enforcing(patience_seconds=2.0) as daemon:
            daemon.cycle()

    def _advance(self, until: float) -> None:
        for happening in [one for one in self.happenings if one[0] <= until]:
            self.happenings.remove(happening)
            happening[1]()
        self.pass_time(until - self.now)
        state = self.engine.snapshot()
        self.violated.update(one.groups for one in find_violations(state, CLUSTER) if one.hard)
        self.most_away = max(self.most_away, sum(not host.up for host in state.hosts))

    def close(self) -> None:
        self.runs.close()
        super().close()


def stage(folder: Path, state: Snapshot, settings: Settings | None = None) -> AbstractContextManager[Stage]:
    return bench(folder, state, settings or {}, Stage)


@contextmanager
def _watched(killer: Killer) -> Iterator[None]:
    """Pass the killer's points: commits of the store's writes, and requests that change something."""
    main = threading.current_thread()
    #: What the transaction that is open has written.
    written: list[str] = []

    def before(connection: Any, cursor: Any, statement: str, *_: object) -> None:
        if threading.current_thread() is main and statement.startswith(_WRITES):
            written.append(" ".join(statement.split()[:3]))

    def commit(connection: Any) -> None:
        if threading.current_thread() is main and written:
            what = ", ".join(written)
            written.clear()
            killer.reach(f"before commit of {what}")

    def rollback(connection: Any) -> None:
        if threading.current_thread() is main:
            written.clear()

    def request(_: Session, method: str, path: str, *_more: Any) -> str:
        return f"{method} {path}"

    with (
        listening(before_cursor_execute=before, commit=commit, rollback=rollback),
        patch.object(Session, "ask", watched(Session.ask, killer.reach_request, request)),
    ):
        yield


def host_of_run(phase: HostPhase, seconds: float = 1.0, **fields: Any) -> HostProgress:
    return HostProgress(**{"host": "h1", "name": "h1", "position": 0, **fields}, phase=phase, seconds=seconds)
