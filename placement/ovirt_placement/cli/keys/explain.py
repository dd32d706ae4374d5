"""`ovirt-placement keys explain`: one placement, step by step and host by host."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.document import find
from ovirt_placement.answers.keys.compiled import EXPLAIN_HEADERS, explain_rows, keys_explain
from ovirt_placement.cli.keys.state import read_keys
from ovirt_placement.cli.question import show, show_answer


def run(args: argparse.Namespace) -> int:
    snapshot = read_keys(args).snapshot
    vm = find(args.vm, "VM", snapshot.vms, snapshot)
    answer = keys_explain(snapshot, vm, whole=args.all)
    if args.json:
        show_answer(args, answer)
        return 0
    if answer.hosts:
        show(explain_rows(answer), EXPLAIN_HEADERS, whole=args.all)
        print()
    print("\n".join((answer.sentence, *answer.notes)))
    return 0
