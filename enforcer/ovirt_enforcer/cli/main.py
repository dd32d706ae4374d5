"""The command `ovirt-enforcer`: repair the rules of a running engine, or say what that would take."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from ovirt_service import entry
from ovirt_service.log_lines import log_to_stderr
from ovirt_service.version_option import add_version

COMMAND = "ovirt-enforcer"

#: The commands with the modules here that know them.
_MODULES = {
    "run": "run",
    "plan": "plan",
    "simulate-policy": "simulate_policy",
    "make-room": "make_room",
    "apply": "apply",
    "approve": "approve",
    "pause": "pause",
    "resume": "pause",
    "history": "history",
    "why-not": "why_not",
    "undo": "undo",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its exit status, or 2 after one line that says what is wrong."""
    return entry.guarded(COMMAND, lambda: _command(arguments))


def _command(arguments: Sequence[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    args = _parser(given[:1]).parse_args(given)
    log_to_stderr("%(levelname)s %(message)s")
    status: int = args.run(args)
    return status


def _parser(given: Sequence[str] = ()) -> argparse.ArgumentParser:
    """With the command that is given, else with all: what each of them needs takes long to load."""
    parser = argparse.ArgumentParser(
        prog=COMMAND,
        description="Finds VMs that break affinity groups, and migrates as few as will mend them.",
    )
    add_version(parser)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    chosen = [_MODULES[name] for name in given if name in _MODULES]
    for module in chosen or dict.fromkeys(_MODULES.values()):
        import_module(f"ovirt_enforcer.cli.{module}").add_parser(commands)
    return parser
