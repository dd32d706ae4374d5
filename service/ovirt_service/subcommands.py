"""The subcommands of a command: what each is for is known without the module that does it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NamedTuple


class Subcommand(NamedTuple):
    module: str
    #: Its line in the help of the command.
    summary: str
    #: The function of the module that adds it, called with what subcommands are added to, and the summary.
    add: str = "add_parser"


def add_subcommands(
    parser: argparse.ArgumentParser, known: Mapping[str, Subcommand], given: Sequence[str] | None
) -> None:
    """Add the subcommand that a command line chooses by its words; all, with their options, where it is None.

    Where the words choose none, as `--help`, `--version` or a mistyped one, all are added by name and summary
    alone: what each of them needs takes long to load.
    """
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    # No option of the commands themselves takes a value: the first other word is the subcommand.
    first = next((word for word in given or () if not word.startswith("-")), "")
    if given is None or first in known:
        for each in known.values() if given is None else (known[first],):
            getattr(import_module(each.module), each.add)(subparsers, each.summary)
    else:
        for name, each in known.items():
            subparsers.add_parser(name, help=each.summary)
