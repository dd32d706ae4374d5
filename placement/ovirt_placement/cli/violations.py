"""`ovirt-placement violations`: which affinity groups the running VMs violate."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.document import find_id
from ovirt_placement.answers.placement import VIOLATION_HEADERS, violation_rows, violations
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.question import add_cluster, add_question, clusters_of, read_state, show, show_answer
from ovirt_placement.inventory import Measured
from ovirt_placement.model import AffinityGroup, AffinityLabel

DESCRIPTION = """\
List the affinity groups that running VMs violate, hard ones first; VMs that violate the rule are marked *.
The exit status is 1 if there is any.
"""

EXAMPLES = """\
  ovirt-placement violations --cluster blue
  ovirt-placement violations --host north --all    # all that VMs on a host violate
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(subparsers, "violations", summary, DESCRIPTION, run, EXAMPLES)
    add_cluster(parser)
    parser.add_argument("--vm", metavar="VM", help="only of this VM")
    parser.add_argument("--host", metavar="HOST", help="only of VMs on this host")
    parser.add_argument("--group", metavar="GROUP", help="only of this affinity group")
    add_question(parser)


def run(args: argparse.Namespace) -> int:
    snapshot = read_state(args, measured=Measured.NOTHING)
    groups: tuple[AffinityGroup | AffinityLabel, ...] = (*snapshot.affinity_groups, *snapshot.affinity_labels)
    answer = violations(
        snapshot,
        clusters_of(args, snapshot),
        vm=find_id(args.vm, "VM", snapshot.vms, snapshot),
        host=find_id(args.host, "host", snapshot.hosts),
        group=find_id(args.group, "affinity group", groups),
    )
    if args.json:
        show_answer(args, answer)
        return int(bool(answer.violations))
    if answer.violations:
        show(violation_rows(answer), VIOLATION_HEADERS, whole=args.all)
    for why in answer.unknown:
        print(f"Not known yet: {why}.")
    if not (answer.violations or answer.unknown):
        filtered = any(word is not None for word in (args.vm, args.host, args.group))
        print("No running VM violates a rule of this kind." if filtered else "No running VM violates a rule.")
    return int(bool(answer.violations))
