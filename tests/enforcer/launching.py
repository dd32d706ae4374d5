"""Runs the real command in a process that gets a signal, or the power fails, at a point of its way.

A point lies before and after each HTTP request (log-ins included), each write of the store, and each commit
of a write.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import sqlalchemy
from sqlalchemy.engine.default import DefaultDialect

import ovirt_enforcer.cli.main
import ovirt_simulator.cli
from ovirt_enforcer.service import process
from ovirt_placement.engine.connection.client import Session
from ovirt_placement.engine.connection.log_ins import SingleSignOn
from ovirt_placement.model import Snapshot, state_file
from tests.enforcer.stand_ins import PlannersHere
from tests.processes import Forked
from tests.scenarios.stage import START, simulated_time

_WRITES = ("INSERT", "UPDATE", "DELETE", "CREATE")
#: The threads in which the enforcer does its work.
_LOOP = ("loop", "asking")
_HOUR_SECONDS = 3600

ANY = "any"


class At(NamedTuple):
    """A signal that a process gets when a point of this name is passed for the n-th time, if ever."""

    #: `ANY` counts all points; an empty one is passed never.
    where: str
    occurrence: int
    number: signal.Signals
    #: Whether only the loop's points count: other threads come there when they come.
    loop: bool = False


#: Nothing happens to the process by itself, which plans at once, in a thread.
NEVER = At("", 0, signal.SIGKILL, loop=True)


class Points:
    """Writes each point that is passed into a file; at one of them the process gets a signal."""

    def __init__(self, path: Path, at: At) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._at = at
        self._seen = 0
        self._lock = threading.Lock()

    def reach(self, what: str) -> None:
        if self._at.loop and threading.current_thread().name not in _LOOP:
            return
        with self._lock:
            os.write(self._file, f"{what}\n".encode())
            counts = self._at.where in (ANY, what)
            self._seen += counts
            fatal = counts and self._seen == self._at.occurrence
        if fatal:
            # Sent to the process, it would take effect on whichever thread comes first, and this one go on.
            signal.pthread_kill(threading.get_ident(), self._at.number)


def run_enforcer(points: Path, at: At, set_back: Path | None, arguments: Sequence[str]) -> int:
    """Be `ovirt-enforcer`, which gets a signal at a point.

    Once a file `set_back` is there, the clock of its database is set back by an hour.
    """
    counted = Points(points, at)
    watch_requests(counted)
    watch_store(counted)
    if at.loop:
        process.PlannerProcesses = PlannersHere  # type: ignore[misc]
    clock = nullcontext() if set_back is None else simulated_time(lambda: _since_start(set_back))
    with clock:
        return ovirt_enforcer.cli.main.main(arguments)


def _since_start(set_back: Path) -> float:
    return time.time() - START.timestamp() - _HOUR_SECONDS * set_back.exists()


def watch_requests(points: Points) -> None:
    def name(_: Session, method: str, path: str, *_more: Any) -> str:
        return f"{method} {path}"

    reach = points.reach
    Session.ask = watched(Session.ask, reach, name)  # type: ignore[method-assign]
    log_in, log_out = SingleSignOn.log_in, SingleSignOn.log_out
    SingleSignOn.log_in = watched(log_in, reach, lambda *_: "log-in")  # type: ignore[method-assign]
    SingleSignOn.log_out = watched(log_out, reach, lambda *_: "log-out")  # type: ignore[method-assign]


def watched(
    call: Callable[..., Any], reach: Callable[[str], object], name: Callable[..., str]
) -> Callable[..., Any]:
    """The same call, with a point before it and one after it."""

    def with_points(*given: Any) -> Any:
        reach(f"before {name(*given)}")
        answer = call(*given)
        reach(f"after {name(*given)}")
        return answer

    return with_points


def watch_store(points: Points) -> None:
    """Pass a point around each write, named by the first words of its SQL."""
    writing = threading.local()

    def title(text: str) -> str:
        return " ".join(text.split(None, 3)[:3])

    def before(_c: Any, _cursor: Any, text: str, *_: Any) -> None:
        if text.lstrip().upper().startswith(_WRITES):
            writing.now = True
            points.reach(f"before {title(text)}")

    def after(_c: Any, _cursor: Any, text: str, *_: Any) -> None:
        if text.lstrip().upper().startswith(_WRITES):
            points.reach(f"after {title(text)}")

    def commit(_dialect: Any, connection: Any) -> None:
        wrote, writing.now = getattr(writing, "now", False), False
        if wrote:
            points.reach("before commit")
        connection.commit()
        if wrote:
            points.reach("after commit")

    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", before)
    sqlalchemy.event.listen(sqlalchemy.Engine, "after_cursor_execute", after)
    # SQLAlchemy has no event for what follows a commit.
    DefaultDialect.do_commit = commit  # type: ignore[method-assign]


class EnforcerProcess(Forked):
    def __init__(
        self, folder: Path, name: str, configuration: Path, at: At, set_back: Path | None = None
    ) -> None:
        self._points = folder / f"{name}.points"
        main = partial(run_enforcer, self._points, at, set_back)
        super().__init__(main, ["run", "--config", str(configuration)], folder / f"{name}.log", os.environ)

    @property
    def said(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    @property
    def passed(self) -> list[str]:
        """The points that it has come by."""
        return self._points.read_text().splitlines() if self._points.exists() else []

    @property
    def killed(self) -> bool:
        return self.poll() == -signal.SIGKILL

    @property
    def stopped(self) -> bool:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).status() == psutil.STATUS_STOPPED
        return False

    @property
    def halted(self) -> bool:
        return self.killed or self.stopped

    def stop(self) -> None:
        self.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        super().kill()
        self.wait()
        self.stdout.close()

    def __exit__(self, *_: object) -> None:
        self.kill()


#: Simulated seconds a second; a migration then takes some 140 ms.
_TIME_SCALE = 25


@contextmanager
def simulator(folder: Path, state: Snapshot, *, time_scale: float = _TIME_SCALE) -> Iterator[str]:
    """The address of its API."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "state.json"
    file.write_bytes(state_file.dumps(state))
    words = ["run", "--state", str(file), "--listen", "127.0.0.1:0", "--time-scale", str(time_scale)]
    with Forked(ovirt_simulator.cli.main, words, folder / "simulator.log", os.environ) as process:
        ready = next(line for line in process.stdout if "listening on" in line)
        yield f"{ready.split()[-1]}/ovirt-engine/api"
        process.end()
