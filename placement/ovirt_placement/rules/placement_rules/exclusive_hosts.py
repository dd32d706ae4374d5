"""Exclusive hosts. Invariant: no VM but the members runs on the hosts; members may run elsewhere, too.

Source: BtrPlace's Lonely, of hosts.
"""

from __future__ import annotations

from typing import ClassVar

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.constraints import Allowed
from ovirt_placement.rules.placement import Placement
from ovirt_placement.rules.placement_rules.kind import (
    NOBODY,
    Against,
    Judge,
    PlacementConstraint,
    PlacementKind,
    common,
)
from ovirt_placement.rules.placement_rules.members import Resolved
from ovirt_placement.rules.verdict import ReasonKind

HOST_IS_EXCLUSIVE = ReasonKind("host_is_exclusive", "{group} keeps this host for other VMs", veto=True)


class ExclusiveHosts(PlacementConstraint, frozen=True, kw_only=True):
    """`vms` are those that must not be there: all others of the cluster."""

    asks: ClassVar[str] = "off exclusive hosts"

    hosts: frozenset[str]

    @property
    def form(self) -> Allowed:
        return Allowed(self.hosts, positive=False)

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        return tuple(vm for vm, host in self.running(placement) if host in self.hosts)

    def judge(self, vm: str, placement: Placement, unconfirmed: frozenset[str] = NOBODY) -> Judge:
        return lambda host: Against(HOST_IS_EXCLUSIVE) if host in self.hosts else None


def _others(snapshot: Snapshot, found: Resolved) -> tuple[str, ...]:
    members = frozenset(found.vms)
    others = (vm.id for vm in snapshot.vms if vm.cluster == found.cluster and vm.id not in members)
    return tuple(sorted(others))


def _make_exclusive(snapshot: Snapshot, found: Resolved, vms: tuple[str, ...]) -> ExclusiveHosts:
    return ExclusiveHosts(vms=vms, hosts=found.hosts, **common(found))


KIND = PlacementKind(
    name="exclusive_hosts",
    summary="no VMs but these on the hosts",
    needs=("vms", "hosts"),
    concerned=_others,
    make=_make_exclusive,
)
