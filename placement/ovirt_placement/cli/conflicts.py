"""`ovirt-placement conflicts`: affinity groups that ask for opposite things, or cannot all hold together."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from ovirt_placement.answers.sentences import group_name, host_name, vm_name
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.question import add_cluster, add_question, clusters_of, read_state, show, show_json
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.rules.affinity.conflicts import Conflict, ConflictType, find_conflicts
from ovirt_placement.rules.affinity.feasibility import Feasibility, judge_groups

DESCRIPTION = """\
List conflicts among affinity groups by the engine's types, and test whether all hard groups of a cluster
can hold together at all: if not, the smallest set that cannot is named. See docs/rules.md.
The exit status is 1 if there is any conflict, or if the test could not be finished.
"""

#: What a conflict of each type is, in words.
MEANINGS = {
    ConflictType.HARD_POSITIVE_AND_NEGATIVE_HOSTS: "hard groups want a VM on a host and off it",
    ConflictType.POSITIVE_AND_NEGATIVE_HOSTS: "groups want a VM on a host and off it",
    ConflictType.HOSTS_AGAINST_TOGETHER: "of VMs that run together one is wanted on a host, another off it",
    ConflictType.HOSTS_AGAINST_APART: "VMs that run apart are wanted on too few hosts",
    ConflictType.NO_COMMON_HOST: "a VM is wanted on hosts that have none in common",
    ConflictType.TOGETHER_AGAINST_APART: "VMs are to run together and apart",
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        subparsers, "conflicts", "affinity groups that cannot hold together", DESCRIPTION, run
    )
    add_cluster(parser)
    add_question(parser)


def run(args: argparse.Namespace) -> int:
    snapshot = read_state(args)
    clusters = clusters_of(args, snapshot)
    found = {cluster.id: find_conflicts(snapshot, cluster.id) for cluster in clusters}
    judged = {cluster.id: judge_groups(snapshot, cluster.id) for cluster in clusters}
    if args.json:
        show_json({"conflicts": found, "feasibility": judged})
    else:
        rows = [
            row
            for cluster in clusters
            for row in _rows(snapshot, cluster, found[cluster.id], judged[cluster.id])
        ]
        show(rows, ("cluster", "conflict", "groups", "VMs", "hosts", "savable"))
    return int(any(found.values()) or any(one.feasible is not True for one in judged.values()))


def _rows(
    snapshot: Snapshot, cluster: Cluster, conflicts: Iterable[Conflict], judged: Feasibility
) -> Iterator[tuple[str, ...]]:
    for one in conflicts:
        yield (
            cluster.name,
            MEANINGS[one.type],
            _groups(snapshot, one.groups),
            _lines(vm_name(vm, snapshot) for vm in one.vms),
            _lines(host_name(host, snapshot) for host in one.hosts),
            "yes" if one.savable else "no",
        )
    for found in judged.contradictions:
        what = "cannot hold together" + ("" if found.smallest else " (perhaps fewer of them cannot)")
        yield (
            cluster.name,
            what,
            _groups(snapshot, found.groups),
            _lines(vm_name(vm, snapshot) for vm in found.vms),
            "",
            "",
        )
    for unknown in judged.unknown:
        yield cluster.name, "not known whether they can hold together", _groups(snapshot, unknown), "", "", ""


def _groups(snapshot: Snapshot, groups: Iterable[str]) -> str:
    return _lines(group_name(group, snapshot) for group in groups)


def _lines(names: Iterable[str]) -> str:
    return "\n".join(names)
