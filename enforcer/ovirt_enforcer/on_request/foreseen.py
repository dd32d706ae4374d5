"""What would come of changing an affinity group, as commands foresee it, for who asks the page."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ovirt_placement.answers.what_if import WhatIfDocument, what_if
from ovirt_placement.forecast.changes import with_group, without_group
from ovirt_placement.forecast.outlook import foresee
from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.problem.build_problem import Repair


def group_foreseen(
    snapshot: Snapshot,
    group: AffinityGroup,
    conflicts: Sequence[str],
    repair: frozenset[Repair],
    seconds: float,
    *,
    gone: bool,
) -> WhatIfDocument:
    """With the group as it is to be, or without it where it is to be `gone`."""
    named = replace(group, id=group.id or group.name)  # a new one has no id yet
    after = without_group(snapshot, group.id) if gone else with_group(snapshot, named)
    outlooks = foresee(snapshot, after, (group.cluster,), repair=repair, deadline=Deadline.after(seconds))
    every = {**snapshot.group_by_id, **after.group_by_id}  # one that goes is still to be named
    return what_if(outlooks, replace(snapshot, affinity_groups=tuple(every.values())), conflicts)
