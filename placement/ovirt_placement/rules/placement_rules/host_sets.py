"""Kinds of placement rules about a set of hosts: how much runs there, and who alone may."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.elements.constraints import Allowed, Sum
from ovirt_placement.rules.elements.placement import Placement
from ovirt_placement.rules.elements.verdict import ReasonKind
from ovirt_placement.rules.placement_rules.kind import (
    NOBODY,
    Against,
    Judge,
    PlacementConstraint,
    PlacementKind,
    common,
)
from ovirt_placement.rules.placement_rules.members import Resolved

HOSTS_ARE_FULL = ReasonKind(
    "hosts_are_full",
    "{group} lets {number:g} in sum run on its hosts, and this VM would be too much",
    veto=True,
)

#: What can be counted of a VM.
COUNTED: Final = ("vms", "vcpus", "memory_mb")


class Amounts(Mapping[str, int]):
    """What counts of each VM that the rule is about."""

    def __init__(self, vms: Mapping[str, Vm], counted: str, found: Resolved) -> None:
        self._vms = vms
        self._counted = counted
        self._cluster = found.cluster
        #: None where the rule is about all of the cluster.
        self._members = frozenset(found.vms) if found.rule.vms else None

    def __contains__(self, vm: object) -> bool:
        if self._members is not None:
            return vm in self._members
        known = self._vms.get(str(vm))
        return known is not None and known.cluster == self._cluster

    def __getitem__(self, vm: str) -> int:
        known = self._vms[vm]
        if self._counted == "vcpus":
            return known.vcpus
        return known.memory_mb if self._counted == "memory_mb" else 1

    def __iter__(self) -> Iterator[str]:
        return (vm for vm in self._vms if vm in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Capacity(PlacementConstraint, frozen=True, kw_only=True):
    """Invariant: the members that run on the hosts count `most` in sum at the most.

    What is counted are VMs, their vCPUs, or their memory in MiB: what licences are sold by. Without VMs the
    rule is about all of the cluster. Source: BtrPlace's RunningCapacity and ResourceCapacity.
    """

    asks: ClassVar[str] = "within the capacity of their hosts"

    hosts: frozenset[str]
    most: int
    amounts: Mapping[str, int]

    @property
    def form(self) -> Sum:
        return Sum(self.hosts, self.most, self.amounts)

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """All members on the hosts, where they are too much."""
        there = self._there(placement)
        return tuple(vm for vm in self.vms if vm in there) if sum(there.values()) > self.most else ()

    def surplus(self, placement: Placement) -> int:
        """The largest first."""
        there = self._there(placement)
        excess, leaving = sum(there.values()) - self.most, 0
        for amount in sorted(there.values(), reverse=True):
            if excess <= 0:
                break
            excess, leaving = excess - amount, leaving + 1
        return leaving

    def excess(self, placement: Placement) -> int:
        """In what is counted."""
        return max(0, sum(self._there(placement).values()) - self.most)

    def judge(self, vm: str, placement: Placement, unconfirmed: frozenset[str] = NOBODY) -> Judge:
        """Against the hosts, from elsewhere; one that migrates counts as long as it holds one of them."""
        if placement.runs_on(vm) in self.hosts:
            return lambda host: None
        peers = {
            peer
            for peer in placement.holding(self.hosts, self.vms)
            if peer != vm and peer not in unconfirmed and peer in self.amounts
        }
        full = sum(self.amounts[peer] for peer in peers) + self.amounts[vm] > self.most

        def against(host: str) -> Against | None:
            if not full or host not in self.hosts:
                return None
            return Against(HOSTS_ARE_FULL, self.most, tuple(peer for peer in self.vms if peer in peers))

        return against

    def _there(self, placement: Placement) -> dict[str, int]:
        found = {vm for vm in placement.holding(self.hosts, self.vms) if vm in self.amounts}
        there = (vm for vm in found if placement.runs_on(vm) in self.hosts)
        return {vm: self.amounts[vm] for vm in there}


def _concerned(snapshot: Snapshot, found: Resolved) -> tuple[str, ...]:
    if found.rule.vms:
        return found.vms
    return tuple(sorted(vm.id for vm in snapshot.vms if vm.cluster == found.cluster))


def _make_sum(snapshot: Snapshot, found: Resolved, vms: tuple[str, ...]) -> Capacity:
    return Capacity(
        vms=vms,
        hosts=found.hosts,
        most=found.rule.most or 0,
        amounts=Amounts(snapshot.vm_by_id, found.rule.counted, found),
        **common(found),
    )


CAPACITY = PlacementKind(
    name="capacity",
    summary="at most `most` VMs, vCPUs or MiB (`counted`) on all of the hosts together",
    needs=("hosts", "most"),
    takes=("vms", "counted"),
    concerned=_concerned,
    make=_make_sum,
)


HOST_IS_EXCLUSIVE = ReasonKind("host_is_exclusive", "{group} keeps this host for other VMs", veto=True)


class ExclusiveHosts(PlacementConstraint, frozen=True, kw_only=True):
    """Invariant: no VM but the members runs on the hosts; members may run elsewhere, too.

    `vms` are those that must not be there: all others of the cluster. Source: BtrPlace's Lonely, of hosts.
    """

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


EXCLUSIVE_HOSTS = PlacementKind(
    name="exclusive_hosts",
    summary="no VMs but these on the hosts",
    needs=("vms", "hosts"),
    concerned=_others,
    make=_make_exclusive,
)
