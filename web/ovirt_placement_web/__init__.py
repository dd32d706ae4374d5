"""The command `ovirt-placement-web`: a page that shows what `answers` knows, and decides nothing."""

from __future__ import annotations

from collections.abc import Callable

from ovirt_service import entry


def command() -> int:
    """Run the installed command."""
    return entry.start(_load)


def _load() -> Callable[[], int]:
    from ovirt_placement_web.cli import main

    return main
