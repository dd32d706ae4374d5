"""One case: a violated cluster, an engine, an enforcer, and a fault; until all is repaired and quiet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ovirt_placement.model import Snapshot
from tests.configuration import write_configuration
from tests.proxy.running import eventually
from tools.faults import processes
from tools.faults.invariants import faults, records, settled
from tools.faults.processes import Daemon
from tools.faults.simulated import Simulated, simulated
from tools.faults.wire import PATIENCE_SECONDS, with_act

#: A stopped enforcer has lost its lease when it wakes.
_LEASE_SECONDS = 0.6
#: Pauses end soon, and no limit is in the way: what holds must hold without them.
_SETTINGS = """\
[enforcer]
mode = "enforce"
strategy = "greedy"
interval_seconds = 0.2
poll_seconds = 0.05
settle_seconds = 0.3
cooldown_seconds = 0.2
cooldown_after_success_seconds = 0.0
refusal_seconds = 0.2
events_seconds = 0.5
breaker_failures = 1000
vm_migrations_per_hour = 1000
cluster_migrations_per_hour = 1000
cluster_migrations_per_cycle = 1000
"""
#: This many readings in a row find nothing to do.
_QUIET_READINGS = 3
#: Each reading of everything begins with it, and nothing else asks for it.
_READING = "/clusters"


class Stage:
    """What a fault acts upon."""

    def __init__(self, folder: Path, engine: Simulated, patience: float, lease: float) -> None:
        """Seconds: how long the enforcer waits for the engine's answer, and its lease."""
        self.folder = folder
        self.engine = engine
        self.wire = engine.wire
        self.recorder = engine.recorder
        self.store = folder / "store.db"
        self.configuration = write_configuration(
            folder,
            engine.api_url,
            engine=f"timeout_seconds = {patience}",
            more=f"{_SETTINGS}lease_seconds = {lease}\n",
        )
        self._enforcer: Daemon | None = None
        self._others: list[Daemon] = []

    @property
    def enforcer(self) -> Daemon:
        """The enforcer; it starts when it is first spoken of."""
        if self._enforcer is None:
            self._enforcer = processes.enforcer(self.folder, self.configuration)
        return self._enforcer

    def start_inventory(self) -> Daemon:
        started = processes.inventory(self.folder, self.configuration)
        self._others.append(started)
        eventually(lambda: "publishing to" in started.said)
        return started

    def restart_enforcer(self) -> None:
        self.enforcer.kill()
        self._enforcer = None

    def at_migration(self, act: Callable[[], object], *, first: bool, number: int = 1) -> None:
        """Act when a migration is asked for, before or after the engine begins it; wait until that was."""
        done: list[bool] = []
        what = with_act(lambda: done.append(bool(act())), first=first)
        self.wire.distort("POST", "/vms/[^/]+/migrate", what, skip=number - 1)
        _ = self.enforcer
        self.until(lambda: done)

    def until(self, condition: Callable[[], object]) -> None:
        """Wait; what was said by then shows why without success."""
        try:
            eventually(condition, 180)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story}") from None

    def until_over(self) -> None:
        """Wait until all faults have struck, all rules are satisfied, all ends are known."""
        _ = self.enforcer
        self.until(lambda: not self.wire.waiting and self._is_well())
        begun, readings = len(self.recorder.begun), self.wire.seen(_READING)
        self.until(lambda: self.wire.seen(_READING) >= readings + _QUIET_READINGS)
        assert self._is_well(), self.story
        assert len(self.recorder.begun) == begun, self.story
        self.enforcer.end()

    def faults(self) -> list[str]:
        """What was wrong, by all four invariants."""
        return [*self.recorder.faults, *faults(self.store, self.recorder.begun)]

    @property
    def story(self) -> str:
        lines = [*map(str, self.recorder.begun), *map(str, records(self.store))]
        return "\n".join([*lines, "" if self._enforcer is None else self._enforcer.said])

    def close(self) -> None:
        for daemon in (self._enforcer, *self._others):
            if daemon is not None:
                daemon.kill()

    def _is_well(self) -> bool:
        return self.recorder.repaired and settled(self.store)


@contextmanager
def stage(
    folder: Path, state: Snapshot, *, patience: float = PATIENCE_SECONDS, lease: float = _LEASE_SECONDS
) -> Iterator[Stage]:
    with simulated(state) as engine:
        made = Stage(folder, engine, patience, lease)
        try:
            yield made
        finally:
            made.close()
