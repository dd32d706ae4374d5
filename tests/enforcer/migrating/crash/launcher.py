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

import ovirt_enforcer.cli
import ovirt_simulator.cli
from ovirt_placement.engine.connection.sso import SdkConnection

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


def run_enforcer(output: Connection, points: Path, fatal: int, arguments: list[str]) -> None:
    """Be `ovirt-enforcer`, as far as the fatal point."""
    _print_to(output)
    counted = Points(points, fatal)
    _watch_requests(counted)
    _watch_store(counted)
    sys.exit(ovirt_enforcer.cli.main(arguments))


def run_simulator(output: Connection, arguments: list[str]) -> None:
    """Be `ovirt-simulator`."""
    _print_to(output)
    sys.exit(ovirt_simulator.cli.main(arguments))


def _print_to(output: Connection) -> None:
    for stream in (sys.stdout, sys.stderr):
        os.dup2(output.fileno(), stream.fileno())
    output.close()


def _watch_requests(points: Points) -> None:
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


def _watch_store(points: Points) -> None:
    writing = threading.local()

    def before(_c: Any, _cursor: Any, text: str, *_: Any) -> None:
        if text.lstrip().upper().startswith(_WRITES):
            writing.now = True
            points.reach(f"before {text.split(None, 1)[0]}")

    def after(_c: Any, _cursor: Any, text: str, *_: Any) -> None:
        if text.lstrip().upper().startswith(_WRITES):
            points.reach(f"after {text.split(None, 1)[0]}")

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
