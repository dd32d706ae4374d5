"""Affinity of VMs to hosts. Invariant: members run only on the hosts listed, or on none of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.host_groups import legacy_groups, listed_hosts
from ovirt_placement.rules.affinity.membership import members
from ovirt_placement.rules.constraint import Constraint
from ovirt_placement.rules.forms import Allowed
from ovirt_placement.rules.placement import Placement


class OnHosts(Constraint, frozen=True, kw_only=True):
    """VMs of a positive group."""

    family: ClassVar[str] = "host_affinity"
    asks: ClassVar[str] = "on its hosts"
    positive: ClassVar[bool] = True

    hosts: frozenset[str]

    @property
    def form(self) -> Allowed:
        return Allowed(self.hosts, self.positive)

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        allowed = self.form
        return tuple(vm for vm, host in self.running(placement) if not allowed.right(host))

    def surplus(self, placement: Placement) -> int:
        return len(self.offenders(placement))

    def admits(self, vm: str, host: str, placement: Placement) -> bool:
        return self.form.right(host)


class OffHosts(OnHosts, frozen=True, kw_only=True):
    """VMs of a negative group."""

    asks: ClassVar[str] = "off its hosts"
    positive: ClassVar[bool] = False


def on_and_off_hosts(snapshot: Snapshot, cluster_id: str) -> Iterator[OnHosts]:
    """Host rules of a cluster, hard and soft, legacy labels last.

    One that lists no host keeps nothing: a group is not configured, and a legacy label shuts its VMs out,
    which no migration repairs.
    """
    for group in (*snapshot.affinity_groups, *legacy_groups(snapshot)):
        listed = listed_hosts(snapshot, group)
        if group.cluster == cluster_id and group.hosts_rule.enabled and listed:
            yield (OnHosts if group.hosts_rule.positive else OffHosts)(
                groups=(group.id,),
                vms=members(snapshot).get(group.id, group.vms),
                hard=group.hosts_rule.enforcing,
                priority=group.priority,
                hosts=listed,
            )
