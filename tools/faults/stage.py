"""One case: a violated cluster, an engine, an enforcer, and a fault; until all is repaired and quiet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil

from ovirt_placement.model import Snapshot
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import Server, serve
from tests.configuration import write_configuration
from tests.processes import PROCESSES
from tests.proxy.running import eventually
from tests.repeating import repeating
from tests.scenarios.stage import START
from tools.faults import launcher
from tools.faults.invariants import Recorder, faults, records, settled
from tools.faults.wire import PATIENCE_SECONDS, Wire, with_act

#: Simulated seconds a second: a migration then takes some 140 ms.
_SCALE = 25.0
_STEP_SECONDS = 0.01
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


class Daemon:
    """A process that logs into a file."""

    def __init__(self, process: BaseProcess, log: Path) -> None:
        self._process = process
        self._log = log
        process.start()

    @property
    def said(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def stop(self) -> None:
        """SIGSTOP: it answers nobody, and keeps all that it has."""
        psutil.Process(self._process.pid).suspend()

    def wake(self) -> None:
        psutil.Process(self._process.pid).resume()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def end(self) -> None:
        self._process.terminate()
        self._process.join(30)
        assert self._process.exitcode == 0, self.said


class Simulated:
    """A simulated engine behind real HTTP and a wire that distorts, in which time passes quickly.

    It outlives its server, as VMs outlive the engine.
    """

    def __init__(self, state: Snapshot) -> None:
        self.engine = Engine.from_snapshot(state, clock=START, settings=PROMPT)
        self.recorder = Recorder(self.engine, {vm.id for vm in state.vms if not vm.migratable})
        self.wire = Wire()
        self._server = self._serve("127.0.0.1:0")

    @property
    def api_url(self) -> str:
        return self._server.api_url

    def restart(self, seconds: float) -> None:
        """End the server with all its sessions; another takes its place after this many simulated seconds."""
        address = self._server.url.removeprefix("http://")
        self._server.close()
        self.let_pass(seconds)
        self._server = self._serve(address)

    def expire_sessions(self) -> None:
        self._server.tokens.revoke_all()

    def let_pass(self, seconds: float) -> None:
        """Wait until this many simulated seconds have passed."""
        until = self._elapsed() + seconds
        eventually(lambda: self._elapsed() >= until)

    def close(self) -> None:
        self._server.close()

    def _serve(self, listen: str) -> Server:
        server = serve(self.engine, listen)
        web: Any = server._server
        web.wsgi_app = self.wire.around(web.wsgi_app)
        return server

    def _elapsed(self) -> float:
        return self.engine._backend.timeline.elapsed

    def pass_time(self) -> None:
        self.engine.advance(_STEP_SECONDS * _SCALE)


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
            more = (self.folder / "points", self.folder / "set-back")
            self._enforcer = self._started(launcher.run_enforcer, "enforcer", *more, ["run"])
        return self._enforcer

    def start_inventory(self) -> Daemon:
        started = self._started(launcher.run_inventory, "inventory", ["inventory", "run"])
        self._others.append(started)
        eventually(lambda: "publishing to" in started.said)
        return started

    def _started(self, run: Callable[..., object], name: str, *more: Any) -> Daemon:
        """Start a process; one that comes after another of its name goes on in the same log."""
        log, (*places, command) = self.folder / f"{name}.log", more
        arguments = (log, *places, [*command, "--config", str(self.configuration)])
        return Daemon(PROCESSES.Process(target=run, args=arguments), log)

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
    with (
        closing(Simulated(state)) as engine,
        repeating(engine.pass_time, every=_STEP_SECONDS),
        closing(Stage(folder, engine, patience, lease)) as made,
    ):
        yield made
