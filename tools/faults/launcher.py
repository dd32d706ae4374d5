"""Runs the real commands in processes that log into a file; the enforcer's database has its own clock."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import sqlalchemy

import ovirt_placement.cli.main
from tests.enforcer import launching
from tests.enforcer.launching import At

#: No point has it: nothing happens to the process by itself.
_NEVER = At("", 0, signal.SIGKILL, loop=True)
_HOUR_DAYS = 1 / 24


def run_enforcer(log: Path, points: Path, set_back: Path, arguments: list[str]) -> None:
    """Be `ovirt-enforcer`; once a file of this name is there, the database's clock is set back an hour."""

    def on_connect(connection: Any, _: object) -> None:
        connection.create_function("julianday", 1, now)

    def now(_: str) -> float:
        (days,) = plain.execute(sqlalchemy.text("SELECT julianday('now')")).one()
        return float(days) - _HOUR_DAYS * set_back.exists()

    # One that keeps its own clock.
    plain = sqlalchemy.create_engine("sqlite://", connect_args={"check_same_thread": False}).connect()
    sqlalchemy.event.listen(sqlalchemy.Engine, "connect", on_connect)
    launching.run_enforcer(log, points, _NEVER, arguments)


def run_inventory(log: Path, arguments: list[str]) -> None:
    """Be `ovirt-placement inventory`."""
    launching.say_into(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    sys.exit(ovirt_placement.cli.main.main(arguments))
