"""What a plan would make worse for highly available VMs when hosts fail, and how much of it does not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Step
from ovirt_placement.planning.steps import apply
from ovirt_placement.rules.failover.check import DEFAULT_BUDGET, Starts, by_engine
from ovirt_placement.rules.failover.failures import judge_failures
from ovirt_placement.rules.failover.outcomes import Domain, Loss, Proven, whole_domains

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
    return found and harm(without_rules(snapshot, repaired), without_rules(end, repaired), cluster)


def safe_part(snapshot: Snapshot, steps: Sequence[Step], cluster: str) -> tuple[tuple[Step, ...], Snapshot]:
    """As many steps, from the first, as do no avoidable harm, and their end; the last repairs something."""
    ends = list(accumulate(steps, apply, initial=snapshot))
    for count in range(len(steps), 0, -1):
        part = steps[:count]
        if part[-1].repairs and avoidable_harm(snapshot, part, ends[count], cluster) is None:
            return tuple(part), ends[count]
    return (), snapshot


def without_rules(snapshot: Snapshot, rules: Collection[str]) -> Snapshot:
    """The state without some rules; a label that is one by itself still brings its members into groups."""
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


#: Single failure domains are judged, as by the watch.
_DOMAINS_AT_ONCE: Final = 1


@dataclass(frozen=True)
class Failing:
    """All failures that a cluster is to survive, judged in one state."""

    proven: tuple[Proven, ...]

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        return tuple(loss for one in self.proven for loss in one.losses)

    @property
    def unknown(self) -> bool:
        """Whether some failures are not judged, for lack of steps."""
        return any(one.unjudged or one.unknown for one in self.proven)

    @cached_property
    def unplaced(self) -> int:
        """VMs without a home, over all failures that are lost."""
        return sum(len(loss.unplaced) for loss in self.losses)

    def no_worse_than(self, other: Failing) -> bool:
        """Whether nothing is lost that was not, and nothing is known less well."""
        return self.sets <= other.sets and self.unplaced <= other.unplaced and not self.unknown

    @cached_property
    def sets(self) -> frozenset[tuple[tuple[str, ...], tuple[str, ...]]]:
        """The hosts, with their domains, that are lost together."""
        return frozenset((loss.hosts, loss.domains) for loss in self.losses)


def failing(snapshot: Snapshot, cluster: str, domains: Sequence[Domain]) -> Failing:
    """Judge every set of as many hosts as the cluster is set to, and every domain by itself."""
    measure = Starts(snapshot, cluster)
    failures = snapshot.cluster_by_id[cluster].ha_failures
    proven = [judge_failures(snapshot, measure, failures, DEFAULT_BUDGET)]
    if units := whole_domains(domains, measure.hosts):
        proven.append(judge_failures(snapshot, measure, _DOMAINS_AT_ONCE, DEFAULT_BUDGET, units=units))
    return Failing(tuple(proven))


class Reserve:
    """What a cluster is set to survive; nothing is asked where it reserves nothing."""

    def __init__(self, snapshot: Snapshot, cluster: str, domains: Sequence[Domain]) -> None:
        self._cluster = cluster
        self._domains = domains
        reserves = snapshot.cluster_by_id[cluster].ha_reservation
        protects = any(vm.ha and vm.cluster == cluster and vm.host for vm in snapshot.vms)
        self.start = self._failing(snapshot) if reserves and protects else None

    def worse(self, state: Snapshot) -> Failing | None:
        """What is lost in a state, if it is more than at the beginning: failures, or VMs in sum over all.

        What is not known for lack of steps counts as lost, unless it was so at the beginning.
        """
        if self.start is None:
            return None
        found = self._failing(state)
        if len(found.sets) <= len(self.start.sets) and found.unplaced <= self.start.unplaced:
            return found if found.unknown and not self.start.unknown else None
        return found

    def _failing(self, state: Snapshot) -> Failing:
        return failing(state, self._cluster, self._domains)
