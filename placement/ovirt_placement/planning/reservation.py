"""What a plan would make worse for highly available VMs when hosts fail, and how much of it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Step
from ovirt_placement.planning.verification import apply
from ovirt_placement.rules.failover.check import by_engine

#: Steps of the check; what it leaves open counts as survived.
_BUDGET = 200_000

#: VMs that find no home, by the hosts that fail.
_Unplaced = Mapping[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Harm:
    """What a plan would make worse, by the failure that it makes worst."""

    #: Hosts that fail together, and highly available VMs that find no home then, and do now.
    hosts: tuple[str, ...]
    vms: tuple[str, ...]
    #: How many VMs find no home at the end of the plan, and now, in sum over all failures.
    then: int
    now: int


def harm(snapshot: Snapshot, end: Snapshot, cluster: str) -> Harm | None:
    """What fails less well at the end of a plan than now; None if nothing does, or nothing is reserved."""
    reserved = snapshot.cluster_by_id[cluster].ha_reservation
    if end is snapshot or not reserved or not any(vm.ha and vm.cluster == cluster for vm in snapshot.vms):
        return None
    return _compared(_unplaced(snapshot, cluster), _unplaced(end, cluster))


def safe_part(snapshot: Snapshot, steps: Sequence[Step], cluster: str) -> tuple[tuple[Step, ...], Snapshot]:
    """As many steps, from the first, as make nothing worse, and their end; the last one repairs something."""
    now = _unplaced(snapshot, cluster)
    for count in range(len(steps), 0, -1):
        if steps[count - 1].repairs:
            end = reduce(apply, steps[:count], snapshot)
            if _compared(now, _unplaced(end, cluster)) is None:
                return tuple(steps[:count]), end
    return (), snapshot


def _compared(now: _Unplaced, then: _Unplaced) -> Harm | None:
    before, after = (sum(map(len, lost.values())) for lost in (now, then))
    if len(then) <= len(now) and after <= before:
        return None
    hosts = max(then, key=lambda failed: len(then[failed]) - len(now.get(failed, ())))
    fresh = tuple(vm for vm in then[hosts] if vm not in now.get(hosts, ()))
    return Harm(hosts, fresh or then[hosts], after, before)


def _unplaced(snapshot: Snapshot, cluster: str) -> _Unplaced:
    failures = snapshot.cluster_by_id[cluster].ha_failures
    found = by_engine(snapshot, cluster, failures, _BUDGET)
    return {loss.hosts: loss.unplaced for loss in found.losses}
