"""Runs the real command in a process that is killed or stopped at a point of any of its threads."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.enforcer import launching
from tests.enforcer.launching import At


def run_enforcer(log: Path, points: Path, where: str, deadly: bool, arguments: list[str]) -> None:
    """Be `ovirt-enforcer`, killed or stopped when the point of this name is passed first, if ever."""
    at = At(where, 1, signal.SIGKILL if deadly else signal.SIGSTOP)
    launching.run_enforcer(log, points, at, arguments)
