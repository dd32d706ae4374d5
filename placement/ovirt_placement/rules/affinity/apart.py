"""Negative VM affinity. Invariant: no two members run on one host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.membership import members
from ovirt_placement.rules.constraint import Constraint
from ovirt_placement.rules.forms import AtMost
from ovirt_placement.rules.placement import Placement


class Apart(Constraint, frozen=True, kw_only=True):
    """VMs of one negative group."""

    family: ClassVar[str] = "vm_affinity"
    asks: ClassVar[str] = "apart"
    positive: ClassVar[bool] = False

    @property
    def form(self) -> AtMost:
        return AtMost(most=1)

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """Members that share their host with another."""
        crowds = Counter(host for _, host in self.running(placement))
        return tuple(vm for vm, host in self.running(placement) if crowds[host] > 1)

    def surplus(self, placement: Placement) -> int:
        hosts = [host for _, host in self.running(placement)]
        return len(hosts) - len(set(hosts))

    def admits(self, vm: str, host: str, placement: Placement) -> bool:
        """To hosts without another member; one that migrates counts at both ends (F4)."""
        return not any(host in placement.occupied(peer) for peer in self.vms if peer != vm)


def apart(snapshot: Snapshot, cluster_id: str) -> Iterator[Apart]:
    """Negative groups of a cluster, hard and soft."""
    for group in snapshot.affinity_groups:
        if group.cluster == cluster_id and group.vms_rule.enabled and not group.vms_rule.positive:
            yield Apart(
                groups=(group.id,),
                vms=members(snapshot)[group.id],
                hard=group.vms_rule.enforcing,
                priority=group.priority,
            )
