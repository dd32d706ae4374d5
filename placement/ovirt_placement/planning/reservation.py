"""Sees that a plan does not make it worse what happens to highly available VMs when hosts fail."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Step
from ovirt_placement.planning.verification import apply
from ovirt_placement.rules.failover.check import by_engine

#: Steps of the check; what it leaves open counts as survived.
_BUDGET = 200_000


def worse(snapshot: Snapshot, end: Snapshot, cluster: str) -> bool:
    """Whether, at the end of a plan, some hosts fail less well than now; never without a reservation."""
    reserved = snapshot.cluster_by_id[cluster].ha_reservation
    if end is snapshot or not reserved or not any(vm.ha and vm.cluster == cluster for vm in snapshot.vms):
        return False
    now, then = _homeless(snapshot, cluster), _homeless(end, cluster)
    return len(then) > len(now) or sum(then.values()) > sum(now.values())


def safe_part(snapshot: Snapshot, steps: Sequence[Step], cluster: str) -> tuple[tuple[Step, ...], Snapshot]:
    """As many steps, from the first, as make nothing worse, and their end; the last one repairs something."""
    for count in range(len(steps), 0, -1):
        if steps[count - 1].repairs:
            end = reduce(apply, steps[:count], snapshot)
            if not worse(snapshot, end, cluster):
                return tuple(steps[:count]), end
    return (), snapshot


def _homeless(snapshot: Snapshot, cluster: str) -> dict[tuple[str, ...], int]:
    """How many VMs find no home, by the hosts that fail."""
    failures = snapshot.cluster_by_id[cluster].ha_failures
    found = by_engine(snapshot, cluster, failures, _BUDGET)
    return {loss.hosts: len(loss.homeless) for loss in found.losses}
