"""Which affinity groups make a loop: those without which the same VMs do not go round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_enforcer.policy_simulation.playing import Cast, Play, play
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.rules.affinity.host_groups import legacy_groups

#: A loop without some of the groups is looked for in this many rounds of it, and this many migrations more.
_ROUNDS = 3
_MORE = 20


class Causes(NamedTuple):
    """Groups that make a loop, and whether each is known to be needed."""

    groups: tuple[str, ...]
    needed: bool


def causes(loop: Play, cluster: str, cast: Cast, deadline: Deadline) -> Causes:
    """Leave out groups, many at first and then one by one, as long as the same VMs go round.

    What is left goes round by itself, and no longer does without any one of its groups.
    """
    vms = {one.vm for one in loop.loop}
    most = _ROUNDS * len(loop.loop) + _MORE

    def goes_round(groups: Collection[str]) -> bool:
        found = play(_with_only(loop.end, cluster, groups), cluster, cast, most, deadline, loop.next)
        return vms <= {one.vm for one in found.loop}

    left, tied = _groups(loop.end, cluster, vms)
    if len(tied) < len(left) and (goes_round(tied) or deadline.over):
        left = tied
    size = max(1, len(left))
    while True:
        fewer = left
        for start in range(0, len(left), size):
            if deadline.over:
                return Causes(tuple(fewer), needed=False)
            without = [group for group in fewer if group not in left[start : start + size]]
            if goes_round(without):
                fewer = without
        if size == 1 and len(fewer) == len(left):
            return Causes(tuple(fewer), needed=not deadline.over)
        left, size = fewer, max(1, size // 2)


def _groups(snapshot: Snapshot, cluster: str, vms: Collection[str]) -> tuple[Sequence[str], Sequence[str]]:
    """All groups of a cluster, legacy labels among them; and those that shared members tie to some VMs."""
    groups = (*snapshot.affinity_groups, *legacy_groups(snapshot))
    members = {
        group.id: snapshot.group_vms.get(group.id, group.vms) for group in groups if group.cluster == cluster
    }
    found = [*vms]
    reached = {*vms}
    tied: set[str] = set()
    groups_of: defaultdict[str, list[str]] = defaultdict(list)
    for group, its in members.items():
        for vm in its:
            groups_of[vm].append(group)
    while found:
        for group in groups_of[found.pop()]:
            if group not in tied:
                tied.add(group)
                found += {*members[group]} - reached
                reached.update(members[group])
    return sorted(members), sorted(tied)


def _with_only(snapshot: Snapshot, cluster: str, groups: Collection[str]) -> Snapshot:
    """The state with only these groups and legacy labels in force in a cluster."""
    return replace(
        snapshot,
        affinity_groups=tuple(
            group for group in snapshot.affinity_groups if group.cluster != cluster or group.id in groups
        ),
        affinity_labels=tuple(
            replace(label, implicit=label.implicit and label.id in groups)
            for label in snapshot.affinity_labels
        ),
    )
