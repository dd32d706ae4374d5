"""The subcommands of a command, each with a module of its own that is loaded when it is asked for."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module


def add_subcommands(
    parser: argparse.ArgumentParser, modules: Mapping[str, str], given: Sequence[str]
) -> None:
    """Add the subcommand that these words begin with, else all: what each of them needs takes long to load.

    `modules` names for each subcommand the module whose `add_parser` adds it.
    """
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    chosen = [modules[name] for name in given[:1] if name in modules]
    for module in chosen or dict.fromkeys(modules.values()):
        import_module(module).add_parser(subparsers)
