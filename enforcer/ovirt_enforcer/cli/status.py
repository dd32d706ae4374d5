"""`ovirt-enforcer status`: the very answer of `ovirt-placement status`."""

from __future__ import annotations

import argparse

from ovirt_placement.cli.status import add_status

EXAMPLES = """\
  ovirt-enforcer status --watch 10
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    add_status(subparsers, summary, EXAMPLES)
