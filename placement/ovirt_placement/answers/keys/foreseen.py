"""What would come of a change of placement keys: for commands, and for the page."""

from __future__ import annotations

from collections.abc import Sequence

from ovirt_placement.answers.keys.key import without_effect
from ovirt_placement.answers.what_if import WhatIfDocument, what_if
from ovirt_placement.forecast.changes import with_keys
from ovirt_placement.forecast.outlook import foresee
from ovirt_placement.model import Snapshot
from ovirt_placement.model.key_resources import clusters_of
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.problem.build_problem import Repair
from ovirt_placement.rules.catalogue import filters_in_force
from ovirt_placement.rules.placement_keys import key_filter
from ovirt_placement.store.keys import KeyChange


def foreseen(
    before: Snapshot,
    change: KeyChange,
    conflicts: Sequence[str],
    *,
    repair: frozenset[Repair],
    deadline: Deadline,
) -> WhatIfDocument:
    """With the keys as they are to be, in every cluster whose policy has their filter."""
    after = with_keys(before, change)
    clusters = (one.id for one in before.clusters if key_filter.RULE in filters_in_force(one))
    touched = (*change.put, *change.remove)
    concerned = {one.id: one for key in touched for one in clusters_of(key.level, key.resource, before)}
    against = (*conflicts, *without_effect(concerned.values()))
    return what_if(foresee(before, after, clusters, repair=repair, deadline=deadline), after, against)
