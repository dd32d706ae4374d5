"""What a change of affinity groups, placement keys, rules or policies comes to, before it is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.answers.keys.key import without_effect
from ovirt_placement.answers.what_if import WhatIfDocument, what_if
from ovirt_placement.engine.reading.policies import Policy
from ovirt_placement.forecast.changes import with_group, with_keys, with_policies, with_rules, without_group
from ovirt_placement.forecast.outlook import foresee
from ovirt_placement.model import AffinityGroup, PlacementKey, Snapshot
from ovirt_placement.model.key_resources import clusters_of
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.problem.build_problem import Repair
from ovirt_placement.rules.catalogue import filters_in_force
from ovirt_placement.rules.placement_keys.units import KEY_FILTER
from ovirt_placement.rules.placement_rules.members import resolved_rules
from ovirt_placement.store.keys import KeyChange
from ovirt_placement.store.placement_rules import RuleChange


class Change(NamedTuple):
    """A state with a change, the clusters that it concerns, and what speaks against it, as sentences."""

    after: Snapshot
    clusters: Iterable[str]
    against: Sequence[str] = ()


def preview(
    state: Snapshot, change: Change, *, repair: frozenset[Repair], deadline: Deadline
) -> WhatIfDocument:
    """The violations, migrations and survived failures that a change of a state comes to."""
    outlooks = foresee(
        state, change.after, tuple(dict.fromkeys(change.clusters)), repair=repair, deadline=deadline
    )
    named = replace(  # what goes is still to be named
        change.after,
        affinity_groups=tuple({**state.group_by_id, **change.after.group_by_id}.values()),
        placement_rules=tuple({**state.rule_by_id, **change.after.rule_by_id}.values()),
    )
    return what_if(outlooks, named, change.against)


def changed_groups(
    state: Snapshot,
    gone: Sequence[AffinityGroup] = (),
    meant: Sequence[AffinityGroup] = (),
    against: Sequence[str] = (),
) -> Change:
    """Without the groups that are to be gone, and with others as they are meant to be."""
    after = state
    for group in gone:
        after = without_group(after, group.id)
    for group in meant:
        after = with_group(after, replace(group, id=group.id or group.name))  # a new one has no id yet
    return Change(after, [group.cluster for group in (*gone, *meant)], against)


def changed_keys(state: Snapshot, change: KeyChange, against: Sequence[str] = ()) -> Change:
    """With the keys as they are to be, in every cluster whose policy has their filter."""
    touched = (*change.put, *change.remove)
    concerned = {one.id: one for key in touched for one in clusters_of(key.level, key.resource, state)}
    clusters = [one.id for one in state.clusters if KEY_FILTER in filters_in_force(one)]
    return Change(with_keys(state, change), clusters, (*against, *without_effect(concerned.values())))


def changed_rules(state: Snapshot, change: RuleChange, against: Sequence[str] = ()) -> Change:
    """With the rules as they are to be, in the clusters of those that come, change or go."""
    after = with_rules(state, change)
    names = {*change.remove, *(rule.name for rule in change.put)}
    clusters = [
        found.cluster
        for each in (state, after)
        for found in resolved_rules(each)
        if found.rule.name in names and found.cluster is not None
    ]
    return Change(after, clusters, against)


def changed_policies(
    state: Snapshot, policies: Mapping[str, Policy], keys: Iterable[PlacementKey], against: Sequence[str] = ()
) -> Change:
    """With other policies, by cluster, and with the special keys that their clusters are given."""
    after = with_keys(with_policies(state, policies), KeyChange(put=tuple(keys)))
    return Change(after, policies, against)
