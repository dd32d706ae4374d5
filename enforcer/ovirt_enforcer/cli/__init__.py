"""The command line: a file a subcommand, which parses and prints and decides nothing."""

from __future__ import annotations

from collections.abc import Callable

from ovirt_service import entry


def command() -> int:
    """Run the installed command."""
    return entry.start(_load)


def _load() -> Callable[[], int]:
    from ovirt_enforcer.cli.main import main

    return main
