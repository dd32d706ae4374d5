"""`ovirt-placement why VM --last`: what the scheduler proxy answered last about a VM."""

from __future__ import annotations

import argparse
from pathlib import Path

from ovirt_placement import config
from ovirt_placement.answers.last_decisions import (
    PastDecision,
    headers,
    last_decisions,
    lines,
    record_of,
    rows,
)
from ovirt_placement.cli.question import show, show_answer
from ovirt_placement.model import Host, Snapshot, Vm


def add_last(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--last", action="store_true", help="what the proxy answered last about the VM, from its record"
    )
    parser.add_argument(
        "--decisions",
        type=Path,
        metavar="FILE",
        help="with --last: the proxy's record, where its configuration in /etc does not say it",
    )


def run(args: argparse.Namespace, snapshot: Snapshot, vm: Vm, only: Host | None) -> int:
    """Print the last decisions about the VM: of one host, or of all that the engine asked about."""
    record = args.decisions or record_of(config.load(args.config).engine.name)
    answer = last_decisions(snapshot, vm, record, only)
    if args.json:
        show_answer(args, answer)
    elif not answer.decisions:
        print(f"{record} holds no decision about VM {vm.name}")
    else:
        for decision in answer.decisions:
            _show(decision, whole=args.all)
    return 0


def _show(decision: PastDecision, *, whole: bool) -> None:
    print("\n".join(lines(decision)))
    if columns := headers(decision):
        show(rows(decision), columns, whole=whole)
    print()
