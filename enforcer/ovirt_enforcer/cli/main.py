"""The command `ovirt-enforcer`: repair the rules of a running engine, or say what that would take."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ovirt_service import entry
from ovirt_service.arguments import Parser
from ovirt_service.log_lines import log_to_stderr
from ovirt_service.subcommands import add_subcommands
from ovirt_service.version_option import add_version

COMMAND = "ovirt-enforcer"

#: The subcommands with the modules that know them.
_MODULES = {
    "run": "ovirt_enforcer.cli.run",
    "status": "ovirt_enforcer.cli.status",
    "plan": "ovirt_enforcer.cli.plan",
    "simulate-policy": "ovirt_enforcer.cli.simulate_policy",
    "make-room": "ovirt_enforcer.cli.make_room",
    "maintenance": "ovirt_enforcer.cli.maintenance.command",
    "apply": "ovirt_enforcer.cli.apply",
    "approve": "ovirt_enforcer.cli.approve",
    "refuse": "ovirt_enforcer.cli.refuse",
    "pause": "ovirt_enforcer.cli.pause",
    "resume": "ovirt_enforcer.cli.pause",
    "history": "ovirt_enforcer.cli.history",
    "why-not": "ovirt_enforcer.cli.why_not",
    "undo": "ovirt_enforcer.cli.undo",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its exit status, or 2 after one line that says what is wrong."""
    return entry.guarded(COMMAND, lambda: _command(arguments))


def _command(arguments: Sequence[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    args = _parser(given).parse_args(given)
    log_to_stderr("%(levelname)s %(message)s")
    status: int = args.run(args)
    return status


def _parser(given: Sequence[str] = ()) -> argparse.ArgumentParser:
    parser = Parser(
        prog=COMMAND,
        description="Finds VMs that violate affinity groups, and migrates as few as will repair them.",
    )
    add_version(parser)
    add_subcommands(parser, _MODULES, given)
    return parser
