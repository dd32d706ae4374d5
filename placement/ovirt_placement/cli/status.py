"""`ovirt-placement status` and `ovirt-enforcer status`: health in one word, and what it is made of."""

from __future__ import annotations

import argparse
import sys
import time

from ovirt_placement import config
from ovirt_placement.answers import configured
from ovirt_placement.answers.status.clusters import CLUSTER_HEADERS, cluster_rows
from ovirt_placement.answers.status.enforcement import enforcement
from ovirt_placement.answers.status.health import (
    Health,
    StatusDocument,
    of_engine,
    of_file,
    status,
    status_lines,
)
from ovirt_placement.answers.status.proxy import of_machine
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.asking import add_cluster, add_question, clusters_of, seconds, show, show_json

DESCRIPTION = """\
Show the health in one word with its reasons: rules, HA reservation, enforcer, and how old the state is.
The exit status is 0 if healthy, 3 if degraded (hard rules are violated, or nothing repairs them), and 1 if
unhealthy (the engine is away, a section of the configuration is wrong, or highly available VMs would not
all restart).
"""

EXAMPLES = """\
  ovirt-placement status --watch
  ovirt-placement status --json --timeout 5      # for a monitor
"""

_STATUSES = {Health.HEALTHY: 0, Health.DEGRADED: 3, Health.UNHEALTHY: 1}
#: Clears a terminal, and begins at its top.
_CLEAR = "\x1b[H\x1b[2J"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    add_status(subparsers, summary, EXAMPLES)


def add_status(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str, examples: str
) -> None:
    """Add the subcommand to a command, which its examples name."""
    parser = add_command(subparsers, "status", summary, DESCRIPTION, run, examples)
    add_cluster(parser)
    parser.add_argument(
        "--watch",
        nargs="?",
        const=5.0,
        type=seconds,
        metavar="SECONDS",
        help="repeat every SECONDS until interrupted (default: 5)",
    )
    add_question(parser)


def run(args: argparse.Namespace) -> int:
    while args.watch is not None:
        answer = _asked(args)
        if sys.stdout.isatty():
            print(_CLEAR, end="")
        _show(args, answer)
        sys.stdout.flush()
        time.sleep(args.watch)
    answer = _asked(args)
    _show(args, answer)
    return _STATUSES[answer.health]


def _asked(args: argparse.Namespace) -> StatusDocument:
    if args.state is not None:
        known = of_file(args.state)
        names = () if args.config is None else configured.configured_names(config.load(args.config))
        return status(known, clusters_of(args, known.snapshot), names=names)
    configuration = config.load(args.config)
    known = of_engine(configuration, args.timeout)
    mistakes = tuple(configured.complaints(configuration))
    enforcer = None if mistakes else enforcement(configuration, known.snapshot)
    proxy = of_machine(configuration.engine.name)
    names = configured.configured_names(configuration)
    return status(known, clusters_of(args, known.snapshot), mistakes, enforcer, proxy, names)


def _show(args: argparse.Namespace, answer: StatusDocument) -> None:
    if args.json:
        show_json(answer)
        return
    print("\n".join(status_lines(answer)))
    if answer.source.kind != "nothing":
        print()
        if answer.clusters:
            show(cluster_rows(answer.clusters), CLUSTER_HEADERS)
        else:
            print("There is no cluster.")
