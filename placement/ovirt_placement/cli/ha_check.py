"""`ovirt-placement ha-check`: whether highly available VMs would be started again if hosts failed."""

from __future__ import annotations

import argparse

from ovirt_placement.answers import ha_check
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.question import add_cluster, add_question, clusters_of, read_state, show, show_json
from ovirt_placement.rules.failover.check import check

DESCRIPTION = """\
Say of each cluster with HA reservation, or of the one named, whether every highly available VM would be
started again if so many hosts failed together, and which sets of hosts must not fail. Safe means that there
is an order of starts of which each passes every filter that is known, the engine's and ours. What the
engine's own check would say stands beside it: it counts the memory that VMs use. Exact, or honestly unknown:
see docs/rules.md. VMs that are down, or on a host that is not up, are named. What hosts and VMs use counts
where it is known: `ovirt-placement snapshot --statistics`. The exit status is 1 unless all are safe.
"""


HEADERS = (
    "cluster",
    "failures",
    "starts are",
    "by the engine's own check",
    "if these fail",
    "these have no home",
)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        subparsers, "ha-check", "whether highly available VMs survive failing hosts", DESCRIPTION, run
    )
    add_cluster(parser)
    parser.add_argument(
        "--failures",
        type=_positive,
        metavar="X",
        help="how many hosts fail together; else what each cluster is set to, by default 1",
    )
    add_question(parser)


def run(args: argparse.Namespace) -> int:
    snapshot = read_state(args)
    found = [
        check(snapshot, cluster.id, args.failures)
        for cluster in clusters_of(args, snapshot)
        if cluster.ha_reservation or args.cluster is not None
    ]
    if args.json:
        show_json(found)
    else:
        rows = [row for one in found for row in ha_check.rows(one, snapshot)]
        show(rows, HEADERS)
    return int(any(one.safe is not True for one in found))


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number
