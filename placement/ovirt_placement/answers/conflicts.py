"""Affinity groups that ask for opposite things, or cannot all hold together, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import group_name, host_name, vm_name
from ovirt_placement.model.record import Record
from ovirt_placement.rules.affinity.conflicts import Conflict, ConflictType, find_conflicts
from ovirt_placement.rules.affinity.feasibility import Contradiction, Feasibility, judge_groups

#: What a conflict of each type is, in words.
MEANINGS = {
    ConflictType.HARD_POSITIVE_AND_NEGATIVE_HOSTS: "hard groups want a VM on a host and off it",
    ConflictType.POSITIVE_AND_NEGATIVE_HOSTS: "groups want a VM on a host and off it",
    ConflictType.HOSTS_AGAINST_TOGETHER: "of VMs that run together one is wanted on a host, another off it",
    ConflictType.HOSTS_AGAINST_APART: "VMs that run apart are wanted on too few hosts",
    ConflictType.NO_COMMON_HOST: "a VM is wanted on hosts that have none in common",
    ConflictType.TOGETHER_AGAINST_APART: "VMs are to run together and apart",
}


class ConflictsAnswer(Record, frozen=True):
    """What is wrong among the groups of one cluster."""

    cluster: str
    conflicts: tuple[Conflict, ...]
    feasibility: Feasibility

    @property
    def sound(self) -> bool:
        """Whether there is no conflict, and all hard groups are known to hold together."""
        return not self.conflicts and self.feasibility.feasible is True


def judge(snapshot: Snapshot, cluster: str) -> ConflictsAnswer:
    return ConflictsAnswer(cluster, find_conflicts(snapshot, cluster), judge_groups(snapshot, cluster))


def concerning(answer: ConflictsAnswer, *, vm: str | None, group: str | None) -> ConflictsAnswer:
    """Of an answer, what concerns a VM and a group, where they are given.

    Groups of which nothing is known yet may concern any VM.
    """
    return ConflictsAnswer(
        answer.cluster,
        tuple(one for one in answer.conflicts if _concerns(one, vm, group)),
        Feasibility(
            tuple(one for one in answer.feasibility.contradictions if _concerns(one, vm, group)),
            tuple(groups for groups in answer.feasibility.unknown if group is None or group in groups),
        ),
    )


def _concerns(one: Conflict | Contradiction, vm: str | None, group: str | None) -> bool:
    return (vm is None or vm in one.vms) and (group is None or group in one.groups)


def rows(answer: ConflictsAnswer, snapshot: Snapshot) -> Iterator[tuple[str, ...]]:
    """In words: cluster, conflict, groups, VMs, hosts, and whether the engine would save the groups."""
    cluster = snapshot.cluster_by_id[answer.cluster]
    for one in answer.conflicts:
        yield (
            cluster.name,
            MEANINGS[one.type],
            _groups(snapshot, one.groups),
            _lines(vm_name(vm, snapshot) for vm in one.vms),
            _lines(host_name(host, snapshot) for host in one.hosts),
            "yes" if one.savable else "no",
        )
    for found in answer.feasibility.contradictions:
        what = "cannot hold together" + ("" if found.smallest else " (perhaps fewer of them cannot)")
        yield (
            cluster.name,
            what,
            _groups(snapshot, found.groups),
            _lines(vm_name(vm, snapshot) for vm in found.vms),
            "",
            "",
        )
    for unknown in answer.feasibility.unknown:
        yield cluster.name, "not known whether they can hold together", _groups(snapshot, unknown), "", "", ""


def _groups(snapshot: Snapshot, groups: Iterable[str]) -> str:
    return _lines(group_name(group, snapshot) for group in groups)


def _lines(names: Iterable[str]) -> str:
    return "\n".join(names)
