"""The command `ovirt-placement`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from ovirt_service import entry
from ovirt_service.arguments import Parser
from ovirt_service.log_lines import log_to_stderr
from ovirt_service.screen import answering
from ovirt_service.subcommands import add_subcommands
from ovirt_service.version_option import add_version

#: The subcommands with the modules that know them.
_MODULES = {
    "snapshot": "ovirt_placement.cli.snapshot",
    "inventory": "ovirt_placement.cli.inventory",
    "status": "ovirt_placement.cli.status",
    "why": "ovirt_placement.cli.why",
    "where": "ovirt_placement.cli.where",
    "violations": "ovirt_placement.cli.violations",
    "conflicts": "ovirt_placement.cli.conflicts",
    "ha-check": "ovirt_placement.cli.ha_check",
    "what-if": "ovirt_placement.cli.what_if",
    "keys": "ovirt_placement.cli.keys.command",
    "groups": "ovirt_placement.cli.groups.command",
    "rules": "ovirt_placement.cli.rules.command",
    "setup": "ovirt_placement.cli.setup.command",
    "store": "ovirt_placement.cli.store_command",
    "doctor": "ovirt_placement.cli.doctor.command",
}

COMMAND = "ovirt-placement"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its status, or 2 after one line that says what is wrong and what to do."""
    return entry.guarded(COMMAND, lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    log_to_stderr()
    given = sys.argv[1:] if arguments is None else list(arguments)
    args = _parser(given).parse_args(given)
    with answering(COMMAND) if getattr(args, "answers", False) else nullcontext():
        status: int = args.run(args)
    return status


def _parser(given: Sequence[str] = ()) -> argparse.ArgumentParser:
    parser = Parser(
        prog=COMMAND,
        description="What is true of an oVirt engine's placement of VMs, and what is allowed.",
    )
    add_version(parser)
    add_subcommands(parser, _MODULES, given)
    return parser
