"""`ovirt-placement conflicts`: affinity groups and placement rules that cannot all be satisfied."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.conflicts import CONFLICT_HEADERS, conflict_rows, conflicts
from ovirt_placement.answers.document import find_id
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.question import add_cluster, add_question, clusters_of, read_state, show, show_answer
from ovirt_placement.inventory import Measured
from ovirt_placement.model.names import named_groups

DESCRIPTION = """\
List conflicts among affinity groups, and test whether all hard groups, placement rules and placement keys
of a cluster can be satisfied together; if not, name the smallest set that cannot. See docs/rules.md.
The exit status is 1 if there is any conflict, or if the test could not be finished.
"""

EXAMPLES = """\
  ovirt-placement conflicts --group web-apart
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(subparsers, "conflicts", summary, DESCRIPTION, run, EXAMPLES)
    add_cluster(parser)
    parser.add_argument("--vm", metavar="VM", help="only of this VM")
    parser.add_argument("--group", metavar="GROUP", help="only of this affinity group or placement rule")
    add_question(parser)


def run(args: argparse.Namespace) -> int:
    snapshot = read_state(args, measured=Measured.NOTHING)
    known = [*snapshot.group_by_id, *snapshot.rule_by_id]
    answer = conflicts(
        snapshot,
        clusters_of(args, snapshot),
        vm=find_id(args.vm, "VM", snapshot.vms, snapshot),
        group=find_id(args.group, "affinity group or placement rule", named_groups(known, snapshot)),
    )
    if args.json:
        show_answer(args, answer)
    elif found := conflict_rows(answer):
        show(found, CONFLICT_HEADERS, whole=args.all)
    elif about := args.vm or args.group:
        print(f"No conflict concerns {about}.")
    else:
        print("No affinity groups clash, and all hard rules can be satisfied together.")
    return int(not answer.sound)
