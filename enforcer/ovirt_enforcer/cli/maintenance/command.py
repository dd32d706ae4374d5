"""`ovirt-enforcer maintenance`: its actions, each in a module of its own."""

from __future__ import annotations

import argparse

from ovirt_enforcer.cli.maintenance import orders, plan, request, status

DESCRIPTION = """\
Take hosts out for maintenance, one after another or a few at once, with every rule satisfied all the time.
See docs/enforcer/maintenance.md.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = commands.add_parser(
        "maintenance",
        help=summary,
        description=DESCRIPTION,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    plan.add_parser(actions)
    request.add_parser(actions)
    status.add_parser(actions)
    orders.add_parser(actions)
