"""Runs the real commands in processes that print into a pipe; the enforcer's dies at its n-th point."""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection
from pathlib import Path

import ovirt_enforcer.cli.main
import ovirt_simulator.cli
from tests.enforcer.launching import Points, plan_in_loop, say_into, watch_requests, watch_store


def run_enforcer(output: Connection, points: Path, fatal: int, arguments: list[str]) -> None:
    """Be `ovirt-enforcer`, as far as the fatal point."""
    say_into(output.fileno())
    plan_in_loop()
    counted = Points(points, fatal)
    watch_requests(counted)
    watch_store(counted)
    sys.exit(ovirt_enforcer.cli.main.main(arguments))


def run_simulator(output: Connection, arguments: list[str]) -> None:
    """Be `ovirt-simulator`."""
    say_into(output.fileno())
    sys.exit(ovirt_simulator.cli.main(arguments))
