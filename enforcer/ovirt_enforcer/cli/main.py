"""The command `ovirt-enforcer`: repair the rules of a running engine, or say what that would take."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ovirt_placement.cli.arguments import become_services_user
from ovirt_service import entry
from ovirt_service.arguments import Parser
from ovirt_service.log_lines import log_to_stderr
from ovirt_service.subcommands import Subcommand, add_subcommands
from ovirt_service.version_option import add_version

COMMAND = "ovirt-enforcer"

#: The subcommands, with what the help says of each.
_SUBCOMMANDS = {
    "run": Subcommand("ovirt_enforcer.cli.run", "find violated rules and repair them, until SIGTERM"),
    "status": Subcommand("ovirt_enforcer.cli.status", "the health of clusters, rules and enforcer"),
    "plan": Subcommand(
        "ovirt_enforcer.cli.plan", "show which migrations would repair violated rules, and why"
    ),
    "simulate-policy": Subcommand(
        "ovirt_enforcer.cli.simulate_policy",
        "simulate rules, scheduling policy and enforcer together, and find loops",
    ),
    "make-room": Subcommand(
        "ovirt_enforcer.cli.make_room", "show which migrations let a VM start that fits nowhere"
    ),
    "maintenance": Subcommand(
        "ovirt_enforcer.cli.maintenance.command",
        "take hosts out for maintenance with every rule satisfied all the time",
    ),
    "apply": Subcommand("ovirt_enforcer.cli.apply", "ask the enforcer to execute a plan"),
    "approve": Subcommand("ovirt_enforcer.cli.approve", "approve a plan that waits"),
    "refuse": Subcommand("ovirt_enforcer.cli.refuse", "refuse a plan that waits"),
    "pause": Subcommand("ovirt_enforcer.cli.pause", "begin no further migration", "add_pause"),
    "resume": Subcommand(
        "ovirt_enforcer.cli.pause", "end a pause, or that of the breaker after failures", "add_resume"
    ),
    "history": Subcommand("ovirt_enforcer.cli.history", "show what happened, why, and the results"),
    "why-not": Subcommand("ovirt_enforcer.cli.why_not", "show why a VM that violates a rule was not moved"),
    "undo": Subcommand("ovirt_enforcer.cli.undo", "show which migrations would undo a plan"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its exit status, or 2 after one line that says what is wrong."""
    return entry.guarded(COMMAND, lambda: _command(arguments))


def _command(arguments: Sequence[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    args = _parser(given).parse_args(given)
    log_to_stderr("%(levelname)s %(message)s")
    become_services_user(args)
    status: int = args.run(args)
    return status


def _parser(given: Sequence[str] | None = None) -> argparse.ArgumentParser:
    parser = Parser(
        prog=COMMAND,
        description="Finds VMs that violate affinity groups, and migrates as few as will repair them.",
    )
    add_version(parser)
    add_subcommands(parser, _SUBCOMMANDS, given)
    return parser
