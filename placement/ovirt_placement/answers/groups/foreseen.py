"""What would come of a change of affinity groups: for commands, and for the page."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ovirt_placement.answers.what_if import WhatIfDocument, what_if
from ovirt_placement.forecast.changes import with_group, without_group
from ovirt_placement.forecast.outlook import foresee
from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.problem.build_problem import Repair


def foreseen(
    before: Snapshot,
    gone: Sequence[AffinityGroup],
    meant: Sequence[AffinityGroup],
    conflicts: Sequence[str],
    *,
    repair: frozenset[Repair],
    deadline: Deadline,
) -> WhatIfDocument:
    """Without the groups that are to be gone, and with others as they are meant to be."""
    after = before
    for group in gone:
        after = without_group(after, group.id)
    for group in meant:
        after = with_group(after, replace(group, id=group.id or group.name))  # a new one has no id yet
    clusters = tuple(dict.fromkeys(group.cluster for group in (*gone, *meant)))
    outlooks = foresee(before, after, clusters, repair=repair, deadline=deadline)
    every = {**before.group_by_id, **after.group_by_id}  # one that goes is still to be named
    return what_if(outlooks, replace(before, affinity_groups=tuple(every.values())), conflicts)
