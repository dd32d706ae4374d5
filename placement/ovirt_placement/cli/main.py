"""The command `ovirt-placement`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import nullcontext
from importlib.metadata import version

from ovirt_placement.cli import (
    conflicts,
    ha_check,
    inventory,
    snapshot,
    status,
    store_command,
    violations,
    what_if,
    where,
    why,
)
from ovirt_placement.cli.doctor import command as doctor
from ovirt_placement.cli.groups import command as groups
from ovirt_placement.cli.keys import command as keys
from ovirt_placement.cli.setup import command as setup
from ovirt_service import entry
from ovirt_service.log_lines import log_to_stderr
from ovirt_service.screen import answering

_COMMANDS = (
    snapshot,
    inventory,
    status,
    why,
    where,
    violations,
    conflicts,
    ha_check,
    what_if,
    keys,
    groups,
    setup,
    store_command,
    doctor,
)


COMMAND = "ovirt-placement"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its status, or 2 after one line that says what is wrong and what to do."""
    return entry.guarded(COMMAND, lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    log_to_stderr()
    args = _parser().parse_args(arguments)
    with answering(COMMAND) if getattr(args, "answers", False) else nullcontext():
        status: int = args.run(args)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=COMMAND,
        description="What is true of an oVirt engine's placement of VMs, and what is allowed.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('ovirt-placement')}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(subparsers)
    return parser
