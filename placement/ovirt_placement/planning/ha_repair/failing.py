"""What is lost in a state of a cluster when hosts fail: what the search for a better state goes by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Step
from ovirt_placement.planning.verification import apply
from ovirt_placement.rules.failover.check import DEFAULT_BUDGET
from ovirt_placement.rules.failover.failures import judge_failures
from ovirt_placement.rules.failover.outcomes import Loss, Proven
from ovirt_placement.rules.failover.starts import Starts
from ovirt_placement.rules.failover.units import Domain, whole_domains

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


def placed(snapshot: Snapshot, where: Mapping[str, str]) -> Snapshot:
    """The snapshot as it is once these VMs are on these hosts."""
    for vm, host in where.items():
        source = snapshot.vm_by_id[vm].host
        if source is not None:
            step = Step(vms=(vm,), sources=(source,), target=host, groups=(), repairs=())
            snapshot = apply(snapshot, step)
    return snapshot
