"""The engine's state as it would be once a change is made, and before anything moves for it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ovirt_placement.engine.reading.policies import Policy
from ovirt_placement.model import AffinityGroup, Cluster, Snapshot
from ovirt_placement.store.keys import KeyChange, KeyPlace
from ovirt_placement.store.placement_rules import RuleChange


def with_group(snapshot: Snapshot, group: AffinityGroup) -> Snapshot:
    """With this group, in place of one that has its id."""
    others = (other for other in snapshot.affinity_groups if other.id != group.id)
    return replace(snapshot, affinity_groups=(*others, group))


def without_group(snapshot: Snapshot, group: str) -> Snapshot:
    return replace(
        snapshot, affinity_groups=tuple(other for other in snapshot.affinity_groups if other.id != group)
    )


def with_keys(snapshot: Snapshot, change: KeyChange) -> Snapshot:
    """With placement keys changed: some go, and others come in the place of those that stand there."""
    gone = {KeyPlace.of(key) for key in (*change.remove, *change.put)}
    kept = (key for key in snapshot.placement_keys if KeyPlace.of(key) not in gone)
    return replace(snapshot, placement_keys=(*kept, *change.put))


def with_rules(snapshot: Snapshot, change: RuleChange) -> Snapshot:
    """With placement rules changed: some go, and others come in the place of those of their names."""
    gone = {*change.remove, *(rule.name for rule in change.put)}
    kept = (rule for rule in snapshot.placement_rules if rule.name not in gone)
    return replace(snapshot, placement_rules=(*kept, *change.put))


def with_policies(snapshot: Snapshot, policies: Mapping[str, Policy]) -> Snapshot:
    """With other policies of clusters, by cluster."""

    def changed(cluster: Cluster) -> Cluster:
        policy = policies.get(cluster.id)
        if policy is None:
            return cluster
        return replace(cluster, policy=policy.factors, scheduling_policy=policy.external)

    return replace(snapshot, clusters=tuple(map(changed, snapshot.clusters)))
