"""A whole oVirt engine on localhost: its state machine, its scheduler and its REST API."""

from __future__ import annotations

from collections.abc import Callable

from ovirt_service import entry


def command() -> int:
    """Run the installed command."""
    return entry.start(_load)


def _load() -> Callable[[], int]:
    from ovirt_simulator.cli import main

    return main
