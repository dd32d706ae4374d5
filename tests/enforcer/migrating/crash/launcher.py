"""Runs the real command in a process that kills itself at its n-th effect on the outside world.

Effects are HTTP requests (log-ins included) and writes of the store; there is a point before and after each
of them, and around each commit of a write.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import ovirtsdk4
import sqlalchemy
from sqlalchemy.engine.default import DefaultDialect

import ovirt_enforcer.cli.main
import ovirt_simulator.cli
from ovirt_enforcer.service import assembly
from ovirt_placement.engine.connection.sso import SdkConnection
from tests.enforcer.planners_here import PlannersHere

_WRITES = ("INSERT", "UPDATE", "DELETE", "CREATE")


class Points:
    """Writes each point that is passed into a file; at the fatal one (0: none) the power fails."""

    def __init__(self, path: Path, fatal: int) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._fatal = fatal
        self._passed = 0
        self._lock = threading.Lock()

    def reach(self, what: str) -> None:
        with self._lock:
            self._passed += 1
            os.write(self._file, f"{what}\n".encode())
            if self._passed == self._fatal:
                os.kill(os.getpid(), signal.SIGKILL)


class HereInPlaceOfProcesses(PlannersHere):
    """Processes that plan have no effect on the outside world, and take their time to start."""

    def answers(self) -> list[Connection]:
        return []

    def close(self) -> None:
        """There is nothing to end."""


def run_enforcer(output: Connection, points: Path, fatal: int, arguments: list[str]) -> None:
    """Be `ovirt-enforcer`, as far as the fatal point."""
    print_to(output)
    assembly.PlannersBeside = HereInPlaceOfProcesses  # type: ignore[misc,assignment]
    counted = Points(points, fatal)
    watch_requests(counted)
    watch_store(counted)
    sys.exit(ovirt_enforcer.cli.main.main(arguments))


def run_simulator(output: Connection, arguments: list[str]) -> None:
    """Be `ovirt-simulator`."""
    print_to(output)
    sys.exit(ovirt_simulator.cli.main(arguments))


def print_to(output: Connection) -> None:
    for stream in (sys.stdout, sys.stderr):
        os.dup2(output.fileno(), stream.fileno())
    output.close()


def watch_requests(points: Points) -> None:
    send, wait, log_in = ovirtsdk4.Connection.send, ovirtsdk4.Connection.wait, SdkConnection._get_sso_response
    titles: dict[int, str] = {}

    def watched_send(self: Any, request: Any) -> Any:
        title = f"{request.method} {request.path}"
        points.reach(f"before {title}")
        context = send(self, request)
        titles[id(context)] = title
        return context

    def watched_wait(self: Any, context: Any, *arguments: Any, **named: Any) -> Any:
        answer = wait(self, context, *arguments, **named)
        points.reach(f"after {titles.pop(id(context))}")
        return answer

    def watched_log_in(self: Any, *arguments: Any) -> Any:
        points.reach("before log-in")
        answer = log_in(self, *arguments)
        points.reach("after log-in")
        return answer

    ovirtsdk4.Connection.send, ovirtsdk4.Connection.wait = watched_send, watched_wait
    SdkConnection._get_sso_response = watched_log_in


def watch_store(points: Points, words: int = 1) -> None:
    """Pass a point around each write, named by so many words of its SQL."""
    writing = threading.local()

    def title(text: str) -> str:
        return " ".join(text.split(None, words)[:words])

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
    DefaultDialect.do_commit = commit
