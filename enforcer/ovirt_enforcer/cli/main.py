"""The command `ovirt-enforcer`: repair the rules of a running engine, or say what that would take."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ovirt_placement.cli.arguments import add_command, add_config, become_services_user
from ovirt_service import entry
from ovirt_service.arguments import Parser, Subcommand, add_subcommands, add_version
from ovirt_service.legible import log_to_stderr

COMMAND = "ovirt-enforcer"

#: The subcommands, with what the help says of each.
_SUBCOMMANDS = {
    "run": Subcommand(__name__, "find violated rules and repair them, until SIGTERM", "add_run"),
    "status": Subcommand(__name__, "the health of clusters, rules and enforcer", "add_status"),
    "plan": Subcommand(
        "ovirt_enforcer.cli.plan", "show which migrations would repair violated rules, and why", "add_plan"
    ),
    "simulate-policy": Subcommand(
        "ovirt_enforcer.cli.plan",
        "simulate rules, scheduling policy and enforcer together, and find loops",
        "add_simulate_policy",
    ),
    "make-room": Subcommand(
        "ovirt_enforcer.cli.plan", "show which migrations let a VM start that fits nowhere", "add_make_room"
    ),
    "maintenance": Subcommand(
        "ovirt_enforcer.cli.maintenance",
        "take hosts out for maintenance with every rule satisfied all the time",
    ),
    "apply": Subcommand("ovirt_enforcer.cli.orders", "ask the enforcer to execute a plan", "add_apply"),
    "approve": Subcommand("ovirt_enforcer.cli.orders", "approve a plan that waits", "add_approve"),
    "refuse": Subcommand("ovirt_enforcer.cli.orders", "refuse a plan that waits", "add_refuse"),
    "pause": Subcommand("ovirt_enforcer.cli.pause", "begin no further migration", "add_pause"),
    "resume": Subcommand(
        "ovirt_enforcer.cli.pause", "end a pause, or that of the breaker after failures", "add_resume"
    ),
    "history": Subcommand(
        "ovirt_enforcer.cli.history", "show what happened, why, and the results", "add_history"
    ),
    "why-not": Subcommand(
        "ovirt_enforcer.cli.history", "show why a VM that violates a rule was not moved", "add_why_not"
    ),
    "undo": Subcommand("ovirt_enforcer.cli.orders", "show which migrations would undo a plan", "add_undo"),
}


RUN = """\
Run the service in the foreground. By default (mode observe) nothing is migrated. See docs/enforcer.md.
"""

RUN_EXAMPLES = """\
  ovirt-enforcer run --config /etc/ovirt-placement/east.toml
"""

STATUS_EXAMPLES = """\
  ovirt-enforcer status --watch 10
"""


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


def add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    add_config(add_command(commands, "run", summary, RUN, _run_service, RUN_EXAMPLES))


def _run_service(args: argparse.Namespace) -> int:
    # All parts of the service take long to load: not for other subcommands.
    from ovirt_enforcer.service import process
    from ovirt_placement import config as configuration

    process.run(configuration.load(args.config), lambda text: print(f"ovirt-enforcer: {text}", flush=True))
    return 0


def add_status(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    """The very answer of `ovirt-placement status`."""
    from ovirt_placement.answers.question import question_named
    from ovirt_placement.cli.asking import add_question_command

    add_question_command(commands, question_named("status"), summary, examples=STATUS_EXAMPLES)
