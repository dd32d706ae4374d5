"""Runs the commands of the administrator, each in a process of its own that bounds it, besides the loop.

At most one of a kind runs for a host of a run. The work itself is written down before it begins, as actions
are: whichever process decides next knows that it ran, and never runs it again.
"""

import contextlib
import fcntl
import json
import math
import os
import shlex
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

from ovirt_enforcer.log import LogText, report
from ovirt_enforcer.settings import MaintenanceSettings
from ovirt_placement.store.enforcer.intents import (
    Cause,
    IntendedMigration,
    Intent,
    IntentKind,
    IntentState,
    Store,
)
from ovirt_placement.store.enforcer.maintenance import HostProgress, MaintenanceRun, Work

_PROCESS: Final = Path(__file__).parent / "command_process.py"
#: What a command gets of the enforcer's environment. No password, token or database is among it.
_PASSED_ON: Final = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
NOT_STARTED: Final = 127
#: Of the output the last lines are shown, as many characters of each; so much of it is read at a time.
_LINES, _LONGEST_LINE, _KEPT_BYTES, _OUTPUT_BYTES = 3, 200, 4096, 1 << 20
#: How long the end of this process waits for commands that end at once when they are asked to.
_LAST_SECONDS: Final = 0.3


class CommandKind(StrEnum):
    """What a command is run for: its setting in [enforcer.maintenance]."""

    #: Holds the next host back as long as its exit status is not 0.
    BLOCKED_BY = "blocked_by"
    #: Does the work in maintenance, in place of the engine's upgrade.
    WORK = "command"


@dataclass(frozen=True, slots=True)
class CommandStatus:
    """How a command stands, or ended."""

    #: Its exit status, negative for a signal; None while it runs.
    status: int | None
    #: The last lines that it has printed, or why it could not be started.
    text: str = ""
    since: str = ""
    #: Why it has ended before its time; empty if it ended by itself.
    interrupted: str = ""

    @property
    def runs(self) -> bool:
        return self.status is None and not self.interrupted

    @property
    def why(self) -> str:
        how = self.interrupted or ("" if self.text else f"exit status {self.status}")
        return ": ".join(filter(None, (how, self.text)))


@dataclass(slots=True)
class _Started:
    #: None if it could not be started, or has ended.
    process: subprocess.Popen[bytes] | None
    known: CommandStatus
    printed: bytes = b""

    def status(self) -> CommandStatus:
        if (process := self.process) is None or process.stdout is None or process.stderr is None:
            return self.known
        over = process.poll() is not None
        self.printed = (self.printed + (process.stdout.read(_OUTPUT_BYTES) or b""))[-_KEPT_BYTES:]
        lines = (line.strip() for line in self.printed.decode(errors="replace").split("\n"))
        text = " / ".join([line[-_LONGEST_LINE:] for line in lines if line][-_LINES:])
        self.known = replace(self.known, text=text)
        if over:
            end = json.loads(process.stderr.read() or b'{"interrupted": "was killed from outside"}')
            self.known = replace(self.known, **end)
            self.stop()
            process.stdout.close()
            process.stderr.close()
            self.process = None
        return self.known

    def stop(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def go_on(self, until: float) -> None:
        """Let it run until this moment of the boot clock, if no later one is named; for any thread."""
        if (process := self.process) is not None and process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):  # it has ended
                process.stdin.write(struct.pack("d", until))


@dataclass(slots=True)
class Commands:
    """The commands of all maintenance runs; for one thread, but for `lead_until`."""

    settings: MaintenanceSettings
    intents: Store
    #: Until when this process leads, by the boot clock, if it does nothing more.
    _leads_until: float = math.inf
    _started: dict[tuple[CommandKind, str, str], _Started] = field(default_factory=dict)

    def status(self, kind: CommandKind, run: MaintenanceRun, host: HostProgress) -> CommandStatus | None:
        """How a command stands; None if it was not run. Raises `StoreAway`."""
        started = self._started.get((kind, run.id, host.host))
        now = None if started is None else started.status()
        if kind is CommandKind.BLOCKED_BY or run.request.work is not Work.COMMAND:
            return now
        ended = self.intents.actions(host.host, within_seconds=run.age_seconds)
        actions, command = (*self.intents.open_actions(), *ended), _correlation_id(run, host)
        intent = next((one for one in actions if one.correlation_id == command), None)
        if intent is None:
            return None
        if intent.state is IntentState.DONE:
            return CommandStatus(0)
        if not intent.open and intent.cause is Cause.INTERRUPTED:
            return CommandStatus(None, interrupted=intent.error or "")
        if not intent.open:
            return CommandStatus(1, intent.error or "")
        if now is None:
            now = CommandStatus(None, interrupted="was ended with the enforcer that had begun it")
        if not now.runs:
            self._record(intent, now)
        return now

    def start(
        self, kind: CommandKind, run: MaintenanceRun, host: HostProgress, *, epoch: int | None = None
    ) -> None:
        """Run a command, unless it runs. Raises `LeaseLost`, `Paused` or `StoreAway` and starts nothing."""
        key = (kind, run.id, host.host)
        if key in self._started and self._started[key].status().runs:
            return
        line, intents = self.settings.blocked_by, tuple[Intent, ...]()
        if kind is CommandKind.WORK:
            intended = IntendedMigration(
                kind=IntentKind.RUN_COMMAND,
                vm="",
                cluster=run.cluster,
                source=None,
                target=host.host,
                correlation_id=_correlation_id(run, host),
            )
            paused_by = run.cluster, run.cluster_name
            line = self.settings.command
            intents = self.intents.prepare((intended,), epoch=epoch, paused_by=paused_by)
        report(LogText.COMMAND_BEGINS, host=host.name, kind=kind)
        started = _start(line, self.settings.command_seconds, self._leads_until, host)
        self._started[key] = started
        started.go_on(self._leads_until)  # it may have been renewed meanwhile
        for intent in intents:
            self.intents.accept(intent.id)

    def read(self) -> None:
        """Read what they print, without waiting: who prints more than a pipe takes waits until it is read."""
        for started in self._started.values():
            started.status()

    def lead_until(self, moment: float) -> None:
        """Let all that runs go on until this moment of the boot clock; for any thread."""
        self._leads_until = moment
        for started in list(self._started.values()):
            started.go_on(moment)

    def stop(self, run: MaintenanceRun, host: HostProgress, kind: CommandKind) -> None:
        if (started := self._started.get((kind, run.id, host.host))) is not None:
            started.stop()

    def forget(self, run: MaintenanceRun, host: HostProgress, kind: CommandKind) -> None:
        """Let a command that has ended be run again."""
        self._started.pop((kind, run.id, host.host), None)

    def end(self, run: MaintenanceRun) -> None:
        for key in [key for key in self._started if key[1] == run.id]:
            self._started.pop(key).stop()
        commands = {_correlation_id(run, host) for host in run.hosts}
        for intent in self.intents.open_actions():
            if intent.correlation_id in commands:
                self._record(intent, CommandStatus(None, interrupted="was stopped with its run"))

    def leave(self) -> None:
        """End all: another process leads from now on, or none."""
        for started in self._started.values():
            started.stop()
        until = time.monotonic() + _LAST_SECONDS
        for process in [one.process for one in self._started.values() if one.process is not None]:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))
        self._started.clear()

    def _record(self, intent: Intent, ended: CommandStatus) -> None:
        if ended.interrupted:
            self.intents.fail(intent.id, ended.why, Cause.INTERRUPTED)
        elif ended.status != 0:
            self.intents.fail(intent.id, ended.why)
        else:
            if intent.state is IntentState.PREPARED:
                self.intents.accept(intent.id)
            self.intents.finish(intent.id)
        report(LogText.COMMAND_ENDED, host=intent.target, why=ended.why)


def _correlation_id(run: MaintenanceRun, host: HostProgress) -> str:
    """That of the one command for a host of a run; the store takes none twice."""
    return f"command-{run.id}-{host.host}"


def _start(line: str, seconds: float, leads_until: float, host: HostProgress) -> _Started:
    known = CommandStatus(None, since=datetime.now(UTC).isoformat(" ", "seconds"))
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= {"MAINTENANCE_HOST": host.name, "MAINTENANCE_HOST_ID": host.host}
    try:
        if not (words := shlex.split(line)):
            raise ValueError("no command is named")
        process = subprocess.Popen(  # noqa: S603 - our own process, which runs the command of the configuration
            [sys.executable, "-I", "-S", str(_PROCESS), str(seconds), str(leads_until), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return _Started(None, replace(known, status=NOT_STARTED, text=str(error)))
    for pipe in filter(None, (process.stdin, process.stdout)):
        os.set_blocking(pipe.fileno(), False)
        with contextlib.suppress(OSError):  # of more than there may be, it has what a pipe has
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _OUTPUT_BYTES)
    return _Started(process, known)
