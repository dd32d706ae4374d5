"""Soft affinity that nobody weighs: rules that ask for a unit which the cluster's policy lacks."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.rules.affinity.host_groups import listed_hosts
from ovirt_placement.rules.affinity.membership import groups_of, members
from ovirt_placement.rules.verdict import Kind, Reason

#: The engine's own weights by their names in a cluster's `policy`, for the unit of ours that they equal.
_ENGINE_WEIGHTS = {"SoftAffinityWeight": "vm_affinity_weight", "HostAffinityWeight": "vm_to_host_weight"}


def missing_units(snapshot: Snapshot, vm_id: str) -> tuple[Reason, ...]:
    """Soft rules of a VM that mean nothing, since its cluster's policy weighs them with no unit.

    A unit with factor 0 weighs nothing either. Where the policy is not known nothing is missing. Hard
    rules are not asked about: whether the engine's own filters stand in the policy is not part of the
    cluster's state.
    """
    vm = snapshot.vm_by_id.get(vm_id)
    if vm is None:
        return ()
    cluster = snapshot.cluster_by_id[vm.cluster]
    return tuple(
        Reason(Kind.UNIT_MISSING, group, vm_id, unit=unit)
        for group, unit in _wanted(snapshot, vm_id)
        if not _weighs(cluster, unit)
    )


def _wanted(snapshot: Snapshot, vm_id: str) -> Iterator[tuple[str, str]]:
    for group in groups_of(snapshot).get(vm_id, ()):
        if group.vms_rule.soft and len(members(snapshot)[group.id]) > 1:
            yield group.id, "SoftAffinityWeight"
        if group.hosts_rule.soft and listed_hosts(snapshot, group):
            yield group.id, "HostAffinityWeight"


def _weighs(cluster: Cluster, unit: str) -> bool:
    policy = cluster.scheduling_policy
    own = policy is None or policy.weights.get(unit, 0) > 0
    return own or cluster.policy.get(_ENGINE_WEIGHTS[unit], 0) > 0
