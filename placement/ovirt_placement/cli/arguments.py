"""Arguments that several subcommands share, so that they read the same everywhere."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from ovirt_placement import config
from ovirt_placement.config_file import DEFAULT_PATH, PATH_VARIABLE
from ovirt_service import identity
from ovirt_service.errors import UserError


def add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help=f"configuration (TOML); else ${PATH_VARIABLE}, else {DEFAULT_PATH}, else the variables"
        " OVIRT_URL, OVIRT_USERNAME, OVIRT_PASSWORD, OVIRT_TOKEN, OVIRT_CAFILE and OVIRT_INSECURE alone",
    )


def add_change(parser: argparse.ArgumentParser) -> None:
    """Add what every command has that changes something: `--dry-run`, and `--json`."""
    parser.add_argument("--dry-run", action="store_true", help="check, show the change, and write nothing")
    add_json(parser)
    parser.set_defaults(changes=True)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json.md)")


def add_command(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    description: str,
    run: Callable[[argparse.Namespace], int],
    examples: str = "",
) -> argparse.ArgumentParser:
    """Add a command, or an action of one; description and examples stand in `--help` as they are written."""
    parser = subparsers.add_parser(
        name,
        help=summary,
        description=description,
        epilog=f"examples:\n{examples}" if examples else None,
    )
    parser.set_defaults(run=run)
    return parser


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}": a whole number, at least 1')
    return int(text)


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
