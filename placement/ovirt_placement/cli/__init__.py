"""The command `ovirt-placement`: parses, asks, prints."""

from __future__ import annotations

from collections.abc import Callable

from ovirt_service import entry


def command() -> int:
    """Run the installed command."""
    return entry.start(_load)


def _load() -> Callable[[], int]:
    from ovirt_placement.cli.main import main

    return main
