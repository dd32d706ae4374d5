"""Runs the real command in a process that stops itself (SIGSTOP) at a point of its loop, by the point's name.

The points are those of the crash tests, as far as the enforcer's loop passes them: renewals of the lease and
what other threads ask come when they come.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

import ovirt_enforcer.cli.main
from ovirt_enforcer.service import assembly
from tests.enforcer.migrating.crash.launcher import Points, watch_requests, watch_store
from tests.enforcer.planners_here import PlannersHere

#: The thread in which the enforcer does its work.
LOOP = "loop"


class PlannersInLoop(PlannersHere):
    """Who leads does not depend on where plans are made, and to start a process for each takes its time."""

    def answers(self) -> list[Connection]:
        return []

    def close(self) -> None:
        """There is nothing to end."""


class StoppingPoints(Points):
    """Writes each point of the loop into a file; at one of them, the process is stopped."""

    def __init__(self, path: Path, where: str, occurrence: int) -> None:
        super().__init__(path, 0)
        self._where = where
        self._occurrence = occurrence
        self._seen = Counter[str]()

    def reach(self, what: str) -> None:
        if threading.current_thread().name != LOOP:
            return
        super().reach(what)
        self._seen[what] += 1
        if what == self._where and self._seen[what] == self._occurrence:
            # Sent to the process, it would take effect on whichever thread comes first, and this one go on.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def run_enforcer(log: Path, points: Path, where: str, occurrence: int, arguments: list[str]) -> None:
    """Be `ovirt-enforcer`, stopped when the point of this name is passed for the n-th time, if ever."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(output, stream.fileno())
    counted = StoppingPoints(points, where, occurrence)
    watch_requests(counted)
    watch_store(counted, words=3)
    assembly.PlannersBeside = PlannersInLoop  # type: ignore[misc, assignment]
    sys.exit(ovirt_enforcer.cli.main.main(arguments))
