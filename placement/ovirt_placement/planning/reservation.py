"""Sees that a plan does not make it worse what happens to highly available VMs when hosts fail."""

from __future__ import annotations

from collections.abc import Sequence

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.certifying import apply
from ovirt_placement.planning.plan import Step
from ovirt_placement.rules.failover.check import by_engine

#: Steps of the check; what it leaves open counts as survived.
_BUDGET = 200_000


def worse(snapshot: Snapshot, steps: Sequence[Step], cluster: str) -> bool:
    """Whether, after these steps, some hosts fail less well than now. Asked only of clusters that reserve."""
    reserved = snapshot.cluster_by_id[cluster].ha_reservation
    if not steps or not reserved or not any(vm.ha and vm.cluster == cluster for vm in snapshot.vms):
        return False
    now = _homeless(snapshot, cluster)
    then = _homeless(_after(snapshot, steps), cluster)
    return len(then) > len(now) or sum(then.values()) > sum(now.values())


def safe_part(snapshot: Snapshot, steps: Sequence[Step], cluster: str) -> tuple[Step, ...]:
    """As many steps, from the first, as make nothing worse; the last one mends something."""
    for count in range(len(steps), 0, -1):
        if steps[count - 1].mends and not worse(snapshot, steps[:count], cluster):
            return tuple(steps[:count])
    return ()


def _homeless(snapshot: Snapshot, cluster: str) -> dict[tuple[str, ...], int]:
    """How many VMs find no home, by the hosts that fail."""
    failures = snapshot.cluster_by_id[cluster].ha_failures
    found = by_engine(snapshot, cluster, failures, _BUDGET)
    return {loss.hosts: len(loss.homeless) for loss in found.losses}


def _after(snapshot: Snapshot, steps: Sequence[Step]) -> Snapshot:
    for step in steps:
        snapshot = apply(snapshot, step)
    return snapshot
