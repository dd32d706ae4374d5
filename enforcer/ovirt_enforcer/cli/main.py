"""The command `ovirt-enforcer`: repair the rules of a running engine, or say what that would take."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.metadata import version

from ovirt_enforcer.cli import (
    apply,
    approve,
    history,
    make_room,
    pause,
    plan,
    run,
    simulate_policy,
    undo,
    why_not,
)
from ovirt_service import entry
from ovirt_service.log_lines import log_to_stderr

COMMAND = "ovirt-enforcer"

_COMMANDS = (run, plan, simulate_policy, make_room, apply, approve, pause, history, why_not, undo)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its exit status, or 2 after one line that says what is wrong."""
    return entry.guarded(COMMAND, lambda: _command(arguments))


def _command(arguments: Sequence[str] | None) -> int:
    args = _parser().parse_args(arguments)
    log_to_stderr("%(levelname)s %(message)s")
    status: int = args.run(args)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=COMMAND,
        description="Finds VMs that break affinity groups, and migrates as few as will mend them.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('ovirt-placement')}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser
