"""`ovirt-placement ha-check`: whether highly available VMs would be started again if hosts failed."""

from __future__ import annotations

import argparse

from ovirt_placement import config
from ovirt_placement.answers.ha_check import DEFAULT_STEPS, Domains, all_together, asked_domains, ha_check
from ovirt_placement.answers.ha_check_text import HEADERS, notes, rows
from ovirt_placement.answers.ha_check_workers import spreading
from ovirt_placement.cli.arguments import add_command, positive
from ovirt_placement.cli.question import add_cluster, add_question, clusters_of, read_state, show, show_answer
from ovirt_placement.model import Snapshot
from ovirt_service import tables
from ovirt_service.errors import UserError

DESCRIPTION = """\
Show for each cluster with HA reservation, or the one named, whether every highly available VM would restart
if hosts or failure domains failed, and which failures would not be survived. See docs/ha.md.
The exit status is 1 unless all are safe.
"""

EXAMPLES = """\
  ovirt-placement ha-check --cluster blue --failures 2
  ovirt-placement ha-check --hosts north,south     # would these two be survived?
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(
        subparsers,
        "ha-check",
        summary,
        DESCRIPTION,
        run,
        EXAMPLES,
    )
    add_cluster(parser)
    parser.add_argument(
        "--failures",
        type=positive,
        metavar="X",
        help="how many hosts or domains fail together; else as each cluster is set, else 1",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--hosts", metavar="HOST,...", help="only the failure of these hosts together")
    what.add_argument(
        "--domain", action="append", metavar="DOMAIN", help="only this failure domain; repeatable"
    )
    what.add_argument("--domains", action="store_true", help="all failure domains")
    parser.add_argument(
        "--steps",
        type=positive,
        metavar="N",
        default=DEFAULT_STEPS,
        help=f"the limit of work: a step for each set of hosts and for each of its VMs; else {DEFAULT_STEPS}",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--processes", type=positive, metavar="N", help="spread the work over this many processes"
    )
    where.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="spread the work over the workers of this Dask scheduler, as in tcp://HOST:8786"
        " (needs the extra `distributed`)",
    )
    add_question(parser)


def run(args: argparse.Namespace) -> int:
    snapshot = read_state(args)
    domains = _domains(args, snapshot)
    with spreading(args.processes, args.scheduler) as spread:
        answer = ha_check(
            snapshot,
            clusters_of(args, snapshot),
            failures=args.failures,
            steps=args.steps,
            domains=domains,
            chosen=args.hosts is not None or args.domain is not None,
            reserving=args.cluster is None,
            spread=spread,
        )
    if args.json:
        show_answer(args, answer)
    else:
        show(rows(answer), HEADERS, whole=args.all)
        if below := list(notes(answer)):
            print()
            tables.show_lines(below)
    return int(not answer.safe)


def _domains(args: argparse.Namespace, snapshot: Snapshot) -> Domains | None:
    """What fails whole; None if each host may fail by itself."""
    if args.hosts is not None:
        if args.failures is not None:
            raise UserError("--hosts names all that fails: it takes no --failures")
        return all_together(args.hosts.split(","), snapshot)
    if args.domain is None and not args.domains:
        return None
    return asked_domains(snapshot, config.load(args.config).ha, args.domain)
