"""The command `ovirt-placement`: parses, asks, prints."""

from __future__ import annotations

from ovirt_service import process


def command() -> int:
    """Run the installed command."""
    return process.start("ovirt_placement.cli.main")
