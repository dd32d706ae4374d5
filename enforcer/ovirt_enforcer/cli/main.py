"""The command `ovirt-enforcer`: repair the rules of a running engine, or say what that would take."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial

import ovirt_enforcer
from ovirt_placement.answers import summaries
from ovirt_placement.cli.main import become_services_user
from ovirt_service import process
from ovirt_service.arguments import Parser, Subcommand, add_subcommands, add_version
from ovirt_service.log import log_to_stderr

COMMAND = "ovirt-enforcer"

_CLI = "ovirt_enforcer.cli"
#: The subcommands that are no questions, with what the help says of each.
_COMMANDS = {
    "run": Subcommand(__name__, "find violated rules and repair them, until SIGTERM", "add_run"),
    "status": Subcommand(__name__, "the health of clusters, rules and enforcer", "add_status"),
    "maintenance": Subcommand(
        f"{_CLI}.maintenance", "take hosts out for maintenance with every rule satisfied all the time"
    ),
    "apply": Subcommand(f"{_CLI}.orders", "ask the enforcer to execute a plan", "add_apply"),
    "approve": Subcommand(f"{_CLI}.orders", "approve a plan that waits", "add_approve"),
    "refuse": Subcommand(f"{_CLI}.orders", "refuse a plan that waits", "add_refuse"),
    "pause": Subcommand(f"{_CLI}.orders", "begin no further migration", "add_pause"),
    "resume": Subcommand(
        f"{_CLI}.orders", "end a pause, or that of the breaker after failures", "add_resume"
    ),
    "history": Subcommand(f"{_CLI}.history", "show what happened, why, and the results", "add_history"),
    "undo": Subcommand(f"{_CLI}.orders", "show which migrations would undo a plan", "add_undo"),
}
#: Where questions stand among them.
_ORDER = ("run", "status", "plan", "simulate-policy", "make-room", *_COMMANDS, "why-not")


RUN = """\
Run the service in the foreground. By default (mode observe) nothing is migrated. See docs/enforcer.md.
"""

RUN_EXAMPLES = """\
  ovirt-enforcer run --config /etc/ovirt-placement/east.toml
"""

STATUS_EXAMPLES = """\
  ovirt-enforcer status --cluster blue
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its exit status, or 2 after one line that says what is wrong."""
    return process.guarded(COMMAND, lambda: _command(arguments))


def _command(arguments: Sequence[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    args = _parser(given).parse_args(given)
    log_to_stderr()
    become_services_user(args)
    status: int = args.run(args)
    return status


def _parser(given: Sequence[str] | None = None) -> argparse.ArgumentParser:
    parser = Parser(
        prog=COMMAND,
        description="Finds VMs that violate affinity groups, and migrates as few as will repair them.",
    )
    add_version(parser)
    add_subcommands(parser, _subcommands(), given)
    return parser


def _subcommands() -> dict[str, Subcommand]:
    """All of them, with the line of each; none of their modules is loaded for it."""
    asking = {
        name: Subcommand("", summary, partial(_add_question, name))
        for name, (summary, _) in summaries(ovirt_enforcer).items()
    }
    known = {**asking, **_COMMANDS}
    return {name: known[name] for name in dict.fromkeys((*_ORDER, *known))}


def _add_question(
    name: str, commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str
) -> None:
    from ovirt_enforcer.cli.plan import READINGS
    from ovirt_placement.answers.question import question_named
    from ovirt_placement.cli.questions import add_question_command

    add_question_command(commands, question_named(name, ovirt_enforcer), summary, reading=READINGS[name])


def add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    from ovirt_placement.cli.questions import add_command, add_config

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
    from ovirt_placement.cli.questions import add_question_command

    add_question_command(commands, question_named("status"), summary, examples=STATUS_EXAMPLES)
