"""`ovirt-placement violations`: which affinity groups the running VMs break."""

from __future__ import annotations

import argparse

from ovirt_placement.answers import violations
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.question import (
    add_cluster,
    add_question,
    clusters_of,
    read_state,
    show,
    show_json,
)
from ovirt_placement.rules.violations import find_violations

DESCRIPTION = """\
List the affinity groups that running VMs break, hard ones first, with where each member runs; VMs that stand
wrong have a *. Groups that share VMs and must run together are listed as one.
The exit status is 1 if there is any.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        subparsers, "violations", "affinity groups that the running VMs break", DESCRIPTION, run
    )
    add_cluster(parser)
    add_question(parser)


def run(args: argparse.Namespace) -> int:
    snapshot = read_state(args)
    found = {cluster.id: find_violations(snapshot, cluster.id) for cluster in clusters_of(args, snapshot)}
    if args.json:
        show_json({cluster: [violations.answer(one) for one in broken] for cluster, broken in found.items()})
    else:
        rows = [violations.row(one, cluster, snapshot) for cluster, broken in found.items() for one in broken]
        show(rows, ("cluster", "rule", "broken", "members"))
    return int(any(found.values()))
