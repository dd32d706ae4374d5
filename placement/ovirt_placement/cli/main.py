"""The command `ovirt-placement`: its subcommands, and the user who runs them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from ovirt_placement import config
from ovirt_placement.answers import summaries
from ovirt_service import identity, process
from ovirt_service.arguments import Parser, Subcommand, add_subcommands, add_version
from ovirt_service.errors import UserError
from ovirt_service.log import log_to_stderr
from ovirt_service.text import answering

#: The subcommands that are no questions, with what the help says of each.
_COMMANDS = {
    "snapshot": Subcommand("ovirt_placement.cli.state", "print a live engine's state file", "add_snapshot"),
    "inventory": Subcommand(
        "ovirt_placement.cli.state", "follow the engine for all readers of this machine", "add_inventory"
    ),
    "keys": Subcommand("ovirt_placement.cli.keys", "placement keys, and how they place a VM"),
    "groups": Subcommand(
        "ovirt_placement.cli.groups", "list affinity groups, add, edit and remove them; what VMs lost"
    ),
    "rules": Subcommand("ovirt_placement.cli.rules", "placement rules: what no affinity group can ask"),
    "setup": Subcommand("ovirt_placement.cli.setup", "a scheduling policy with our units, in the engine"),
    "store": Subcommand(
        "ovirt_placement.cli.state", "make the store again, back it up, restore it", "add_store"
    ),
}
#: Where questions stand among them; others, which have no action of a command, come last.
_ORDER = (
    *("snapshot", "inventory", "status", "why", "where", "violations", "conflicts", "ha-check", "what-if"),
    *(*_COMMANDS, "doctor"),
)


def _subcommands() -> dict[str, Subcommand]:
    """All of them, with the line of each; none of their modules is loaded for it."""
    asking = {
        name: Subcommand("", summary, partial(_add_question, name))
        for name, (summary, _) in summaries().items()
        if " " not in name
    }
    known = {**asking, **_COMMANDS}
    return {name: known[name] for name in dict.fromkeys((*_ORDER, *sorted(known)))}


def _add_question(
    name: str, subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str
) -> None:
    from ovirt_placement.answers.question import question_named
    from ovirt_placement.cli.questions import add_question_command

    add_question_command(subparsers, question_named(name), summary)


COMMAND = "ovirt-placement"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its status, or 2 after one line that says what is wrong and what to do."""
    return process.guarded(COMMAND, lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    log_to_stderr()
    given = sys.argv[1:] if arguments is None else list(arguments)
    args = _parser(given).parse_args(given)
    become_services_user(args)
    with answering(COMMAND) if getattr(args, "answers", False) else nullcontext():
        status: int = args.run(args)
    return status


def _parser(given: Sequence[str] | None = None) -> argparse.ArgumentParser:
    parser = Parser(
        prog=COMMAND, description="What is true of an oVirt engine's placement of VMs, and what is allowed."
    )
    add_version(parser)
    add_subcommands(parser, _subcommands(), given)
    return parser


def become_services_user(args: argparse.Namespace) -> None:
    """Let root go on as the user of the services, whose folders the configuration names.

    The files that the command line and the configuration name are opened before. A command that sets
    `remains_root` does this itself, for what needs it. Raises `UserError` as `identity.become_owner`.
    """
    if os.geteuid() != 0 or "config" not in args or "remains_root" in args:
        return
    try:
        found = config.load(args.config)
    except UserError:
        return  # the command reports it, if it needs one
    if args.config is None and Path(found.source).is_absolute():
        args.config = Path(found.source)  # it may be closed to that user
    named = [value for value in vars(args).values() if isinstance(value, Path)]
    identity.become_owner(found.folders, (*found.files, *named))
