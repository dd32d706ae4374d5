"""`ovirt-enforcer run`: the service."""

from __future__ import annotations

import argparse

from ovirt_enforcer.service import process
from ovirt_placement import config as configuration
from ovirt_placement.cli.arguments import add_command, add_config

DESCRIPTION = """\
Run the service in the foreground. By default (mode observe) nothing is migrated. See docs/enforcer.md.
"""

EXAMPLES = """\
  ovirt-enforcer run --config /etc/ovirt-placement/east.toml
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(commands, "run", summary, DESCRIPTION, run, EXAMPLES)
    add_config(parser)


def run(args: argparse.Namespace) -> int:
    process.run(configuration.load(args.config), lambda text: print(f"ovirt-enforcer: {text}", flush=True))
    return 0
