"""What a plan would make worse for highly available VMs when hosts fail, and how much of it does not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from msgspec.structs import replace

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


def avoidable_harm(snapshot: Snapshot, steps: Sequence[Step], end: Snapshot, cluster: str) -> Harm | None:
    """The same but for what the rules that are repaired cost by themselves.

    That is what would be lost no more than now if these rules did not keep VMs from restarting: every
    placement that satisfies them costs it. A group of as many VMs as there are hosts is the usual case.
    """
    repaired = {group for step in steps for group in step.repairs}
    found = harm(snapshot, end, cluster)
    return found and harm(_without(snapshot, repaired), _without(end, repaired), cluster)


def safe_part(snapshot: Snapshot, steps: Sequence[Step], cluster: str) -> tuple[tuple[Step, ...], Snapshot]:
    """As many steps, from the first, as do no avoidable harm, and their end; the last repairs something."""
    ends = list(accumulate(steps, apply, initial=snapshot))
    for count in range(len(steps), 0, -1):
        part = steps[:count]
        if part[-1].repairs and avoidable_harm(snapshot, part, ends[count], cluster) is None:
            return tuple(part), ends[count]
    return (), snapshot


def _without(snapshot: Snapshot, rules: Collection[str]) -> Snapshot:
    """A label that is a rule by itself still brings its members into groups."""
    labels = (replace(one, implicit=False) if one.id in rules else one for one in snapshot.affinity_labels)
    return replace(
        snapshot,
        affinity_groups=tuple(one for one in snapshot.affinity_groups if one.id not in rules),
        affinity_labels=tuple(labels),
        placement_rules=tuple(one for one in snapshot.placement_rules if one.id not in rules),
    )


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
