"""Runs the real command in a process that gets a signal, of its own, at a point of any of its threads."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path

import ovirt_enforcer.cli.main
from tests.enforcer.migrating.crash.launcher import Points, watch_requests, watch_store


class SignalPoints(Points):
    """Writes each point into a file; when one is passed for the first time, the process gets a signal."""

    def __init__(self, path: Path, where: str, deadly: bool) -> None:
        super().__init__(path, 0)
        self._where = where
        self._signal = signal.SIGKILL if deadly else signal.SIGSTOP
        self._seen = Counter[str]()

    def reach(self, what: str) -> None:
        super().reach(what)
        self._seen[what] += 1
        if what == self._where and self._seen[what] == 1:
            # Sent to the process, it would take effect on whichever thread comes first, and this one go on.
            signal.pthread_kill(threading.get_ident(), self._signal)


def run_enforcer(log: Path, points: Path, where: str, deadly: bool, arguments: list[str]) -> None:
    """Be `ovirt-enforcer`, killed or stopped when the point of this name is passed first, if ever."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(output, stream.fileno())
    counted = SignalPoints(points, where, deadly)
    watch_requests(counted)
    watch_store(counted, words=3)
    sys.exit(ovirt_enforcer.cli.main.main(arguments))
