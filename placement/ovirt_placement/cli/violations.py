"""`ovirt-placement violations`: which affinity groups the running VMs break."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.sentences import group_name, host_name, vm_name
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.question import add_cluster, add_question, clusters_of, read_state, show, show_json
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.violations import Family, Location, Violation, find_violations

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
        show_json(found)
    else:
        show(
            [
                _row(snapshot, cluster, violation)
                for cluster, violations in found.items()
                for violation in violations
            ],
            ("cluster", "rule", "broken", "members"),
        )
    return int(any(found.values()))


def _row(snapshot: Snapshot, cluster: str, violation: Violation) -> tuple[str, str, str, str]:
    groups = "\n".join(group_name(group, snapshot) for group in violation.groups)
    members = "\n".join(_member(snapshot, violation, at) for at in violation.locations)
    return snapshot.cluster_by_id[cluster].name, _rule(violation), groups, members


def _rule(violation: Violation) -> str:
    strength = "hard" if violation.hard else f"soft, priority {violation.priority:g}"
    if violation.family is Family.VM_AFFINITY:
        return f"{'together' if violation.positive else 'apart'} ({strength})"
    return f"{'on' if violation.positive else 'off'} its hosts ({strength})"


def _member(snapshot: Snapshot, violation: Violation, at: Location) -> str:
    mark = " *" if at.vm in violation.offenders else ""
    state = "" if at.host_up else " (not up)"
    return f"{vm_name(at.vm, snapshot)} on {host_name(at.host, snapshot)}{state}{mark}"
