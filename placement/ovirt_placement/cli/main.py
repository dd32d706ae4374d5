"""The command `ovirt-placement`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module

from ovirt_service import entry
from ovirt_service.log_lines import log_to_stderr
from ovirt_service.screen import answering
from ovirt_service.version_option import add_version

#: The commands with the modules here that know them.
_MODULES = {
    "snapshot": "snapshot",
    "inventory": "inventory",
    "status": "status",
    "why": "why",
    "where": "where",
    "violations": "violations",
    "conflicts": "conflicts",
    "ha-check": "ha_check",
    "what-if": "what_if",
    "keys": "keys.command",
    "groups": "groups.command",
    "setup": "setup.command",
    "store": "store_command",
    "doctor": "doctor.command",
}

COMMAND = "ovirt-placement"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its status, or 2 after one line that says what is wrong and what to do."""
    return entry.guarded(COMMAND, lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    log_to_stderr()
    given = sys.argv[1:] if arguments is None else list(arguments)
    args = _parser(given[:1]).parse_args(given)
    with answering(COMMAND) if getattr(args, "answers", False) else nullcontext():
        status: int = args.run(args)
    return status


def _parser(given: Sequence[str] = ()) -> argparse.ArgumentParser:
    """With the command that is given, else with all: what each of them needs takes long to load."""
    parser = argparse.ArgumentParser(
        prog=COMMAND,
        description="What is true of an oVirt engine's placement of VMs, and what is allowed.",
    )
    add_version(parser)
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    chosen = [_MODULES[name] for name in given if name in _MODULES]
    for module in chosen or _MODULES.values():
        import_module(f"ovirt_placement.cli.{module}").add_parser(subparsers)
    return parser
