"""`ovirt-placement inventory run`: the service that reads the engine for everyone on this machine."""

from __future__ import annotations

import argparse

from ovirt_placement import config
from ovirt_placement.cli.arguments import add_command, add_config

DESCRIPTION = """\
Follow the engine's events, and publish its state for the plugins, the enforcer and the commands of this
machine, until SIGTERM. See docs/inventory.md.
"""

EXAMPLES = "  ovirt-placement inventory run --config /etc/ovirt-placement/east.toml\n"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = subparsers.add_parser("inventory", help=summary)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    running = add_command(actions, "run", "run the service in the foreground", DESCRIPTION, run, EXAMPLES)
    add_config(running)


def run(args: argparse.Namespace) -> int:
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.inventory.service import service
    from ovirt_placement.units.decisions import Decider

    configuration = config.load(args.config)
    directory = configuration.inventory.directory
    service.run(
        configuration, lambda: print(f"ovirt-placement: publishing to {directory}", flush=True), Decider
    )
    return 0
