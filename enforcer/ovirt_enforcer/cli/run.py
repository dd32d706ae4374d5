"""`ovirt-enforcer run`: the service."""

from __future__ import annotations

import argparse

from ovirt_enforcer.cli.arguments import add_config
from ovirt_enforcer.service import process
from ovirt_placement import config as configuration


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("run", help="find broken rules and repair them, until SIGTERM")
    add_config(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    process.run(configuration.load(args.config), lambda text: print(f"ovirt-enforcer: {text}", flush=True))
    return 0
