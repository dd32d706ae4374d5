"""The command `ovirt-placement`."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from ovirt_placement.cli import conflicts, ha_check, inventory, snapshot, status, violations, where, why
from ovirt_placement.cli.doctor import command as doctor
from ovirt_placement.cli.groups import command as groups
from ovirt_placement.cli.keys import command as keys
from ovirt_placement.cli.setup import command as setup
from ovirt_service.errors import EXIT_STATUS, UserError

_COMMANDS = (
    snapshot,
    inventory,
    status,
    why,
    where,
    violations,
    conflicts,
    ha_check,
    keys,
    groups,
    setup,
    doctor,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; return 0, or 2 after one line that says what is wrong and what to do."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    args = _parser().parse_args(arguments)
    try:
        status: int = args.run(args)
    except UserError as error:
        print(f"ovirt-placement: {' '.join(str(error).split())}", file=sys.stderr)
        return EXIT_STATUS
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has enough of it; Python must not complain at its end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ovirt-placement",
        description="What is true of an oVirt engine's placement of VMs, and what is allowed.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('ovirt-placement')}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(subparsers)
    return parser
