"""A whole oVirt engine on localhost: its state machine, its scheduler and its REST API."""

from __future__ import annotations

from ovirt_service import entry


def command() -> int:
    """Run the installed command."""
    return entry.start("ovirt_simulator.cli")
