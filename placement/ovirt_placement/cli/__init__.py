"""The command `ovirt-placement`: parses, asks, prints."""

from __future__ import annotations

from ovirt_service import entry


def command() -> int:
    """Run the installed command."""
    return entry.start("ovirt_placement.cli.main")
