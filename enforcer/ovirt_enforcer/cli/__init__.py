"""The command line: a file a subcommand, which parses and prints and decides nothing."""

from __future__ import annotations

from ovirt_service import entry


def command() -> int:
    """Run the installed command."""
    return entry.start("ovirt_enforcer.cli.main")
