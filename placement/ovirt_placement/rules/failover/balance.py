"""The balance: HA first, then load, by moves after which each failure is survived that is survived now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from heapq import nlargest
from math import inf

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.snapshot import HOST_STATISTICS, VM_STATISTICS
from ovirt_placement.rules.doubts import under_way
from ovirt_placement.rules.elements.assignment import Budget, BudgetSpentError
from ovirt_placement.rules.elements.placement import World
from ovirt_placement.rules.elements.resources import huge_page_kib, physical_room, required_mb
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_placement.rules.elements.verdict import BalanceMove, BalanceRequest, whole_number
from ovirt_placement.rules.failover.admission import PER_STEP, newly_lost
from ovirt_placement.rules.failover.check import Starts
from ovirt_placement.rules.failover.failures import Sweep
from ovirt_placement.rules.failover.measures import NONE, bond_of, rivalries_of
from ovirt_placement.rules.failover.outcomes import Domain, FailureUnit, domains_of, to_survive
from ovirt_placement.rules.ha import (
    OVER_UTILIZATION,
    Asking,
    added,
    balance_ha_vms,
    measure_of,
    measure_spread,
)
from ovirt_placement.rules.load import balance_load, limits_of, overloaded, overloads

#: Steps of all judgements of one call: some 100 ms in a large cluster, besides what all calls take.
_STEPS = 4_000
#: A VM with more of them in hard negative groups is not taken to find a spare host; each may keep off two.
_MOST_RIVALS = 4


class _Failures:
    """The failures of a cluster that are to be survived, in one state."""

    def __init__(self, snapshot: Snapshot, cluster: str, domains: tuple[Domain, ...]) -> None:
        self._snapshot = snapshot
        self._cluster = cluster
        self._measure = Starts(snapshot, cluster)
        failures = snapshot.cluster_by_id[cluster].ha_failures
        self._to_survive = [*to_survive(self._measure.hosts, failures, domains)]
        up = (host for host in snapshot.hosts_of_cluster[cluster] if host.up)
        self._spare: dict[frozenset[str], int] = {}
        self._room = {host.id: _room_mb(snapshot, host) for host in up}

    def sure(self, vm: Vm, hosts: tuple[str, ...]) -> tuple[str, ...]:
        """The hosts of which room alone says that a move there makes no failure worse.

        Such a host still takes all that a failure may have to send there, and the VM finds a spare one.
        """
        rivals = vm.id in rivalries_of(self._snapshot)
        if not self._measure.restart_check.plain or rivals or self._tied(vm):
            return ()
        roomy = (host for host in hosts if self._beyond(vm, host) >= self._most_bound)
        return tuple(roomy) if not vm.ha or self._finds_spare(vm) else ()

    def harmed(self, vm: Vm, host: str, budget: Budget) -> bool:
        """Whether a failure that is survived now is not after a move. Raises `BudgetSpentError`."""
        budget.spend((len(self._snapshot.vms) + len(self._snapshot.hosts)) // PER_STEP)
        after = World(self._snapshot).moved((vm.id,), host).snapshot
        measure = Starts(after, self._cluster)
        for units, at_once in self._to_survive:
            if at_once == 1 and self._measure.restart_check.plain:
                units = self._at_risk(units, vm, host)
            then = Sweep(after, measure, at_once, budget.left, units)
            if newly_lost(then, self._measure, budget) is not None:
                return True
            if not then.ended:
                raise BudgetSpentError
        return False

    def _at_risk(self, units: Sequence[FailureUnit], vm: Vm, host: str) -> tuple[FailureUnit, ...]:
        """What fails with a host, has VMs tied to the one that moves, or may send more than it takes."""
        if huge_page_kib(vm) is not None:
            return tuple(units)
        beyond = self._beyond(vm, host)
        bonds, rivalries = bond_of(self._snapshot), rivalries_of(self._snapshot)
        tied = {one for one, bond in bonds.items() if bond == bonds.get(vm.id)}
        tied |= {one for one in rivalries if not rivalries[one].isdisjoint(rivalries.get(vm.id, NONE))}
        concerned = {host, *(self._snapshot.vm_by_id[one].host for one in tied)}
        return tuple(
            unit
            for unit in units
            if not concerned.isdisjoint(unit.hosts) or self._sum(self._bound, unit) > beyond
        )

    def _tied(self, vm: Vm) -> bool:
        """Whether more than memory and hard negative groups decides where a VM restarts."""
        return vm.id in bond_of(self._snapshot) or huge_page_kib(vm) is not None

    def _beyond(self, vm: Vm, host: str) -> int:
        """How many MiB a host has besides what a VM takes."""
        return self._room.get(host, 0) - required_mb(vm)

    @cached_property
    def _enough(self) -> int:
        """How many hosts leave one for each VM that restarts after any failure, wherever others restart."""
        count = {host: len(self._measure.vms_on((host,))) for host in self._measure.hosts}
        vms, failed = self._most(count), self._most(dict.fromkeys(count, 1))
        return failed + 2 * (vms + 1) + 2 * _MOST_RIVALS

    def _spare_mb(self, hosts: frozenset[str]) -> int:
        """The least room in MiB of that many of these hosts, those with most of it; 0 of fewer."""
        if hosts not in self._spare:
            found = nlargest(self._enough, (room for host, room in self._room.items() if host in hosts))
            self._spare[hosts] = found[-1] if len(found) == self._enough else 0
        return self._spare[hosts]

    def _finds_spare(self, vm: Vm) -> bool:
        """Whether enough hosts take a VM by itself, but for those that have its rivals."""
        groups = rivalries_of(self._snapshot).get(vm.id, NONE)
        return (
            sum(len(self._snapshot.group_vms[group]) - 1 for group in groups) <= _MOST_RIVALS
            and not self._tied(vm)
            and required_mb(vm) <= self._spare_mb(self._measure.restart_check.open_to(vm.id))
        )

    @cached_property
    def _bound(self) -> dict[str, int]:
        """By host, what the VMs take in MiB of which it is not sure that they find a spare host."""
        found = {}
        for host in self._measure.hosts:
            vms = [self._snapshot.vm_by_id[vm] for vm in self._measure.vms_on((host,))]
            found[host] = sum(required_mb(vm) for vm in vms if not self._finds_spare(vm))
        return found

    @cached_property
    def _most_bound(self) -> int:
        return self._most(self._bound)

    def _most(self, by_host: Mapping[str, int]) -> int:
        """The largest sum over all hosts that a failure to survive takes."""
        return max(
            sum(nlargest(at_once, (self._sum(by_host, unit) for unit in units)))
            for units, at_once in self._to_survive
        )

    def _sum(self, by_host: Mapping[str, int], unit: FailureUnit) -> int:
        return sum(by_host[host] for host in unit.hosts)


def _room_mb(snapshot: Snapshot, host: Host) -> int:
    """What a host has for VMs that come, by what it may hand out and physically."""
    room = physical_room(snapshot, host)
    return host.free_mb if room is None else min(host.free_mb, room.memory_mb + room.swap_mb)


class _Harmless(Asking):
    """The hosts that accept a VM and to which it moves without harm; any where nothing is reserved."""

    def __init__(self, snapshot: Snapshot, cluster: str, parameters: Mapping[str, str]) -> None:
        super().__init__()
        self._snapshot = snapshot
        self._cluster = cluster
        self._parameters = parameters
        self._budget = Budget(_STEPS)

    @cached_property
    def _states(self) -> list[_Failures]:
        """What is on its way a failure may meet at either end."""
        reserved = self._snapshot.cluster_by_id[self._cluster].ha_reservation
        if not reserved or not any(vm.ha and vm.cluster == self._cluster for vm in self._snapshot.vms):
            return []
        domains = domains_of(self._snapshot, self._parameters)
        states = (self._snapshot, under_way(self._snapshot, self._cluster).end)
        return [_Failures(one, self._cluster, domains) for one in states if one is not None]

    def _admitted(self, snapshot: Snapshot, vm: Vm, hosts: tuple[str, ...]) -> tuple[str, ...]:
        """Those of which it is sure; where none is, those that are judged harmless within the steps."""
        sure = hosts
        for one in self._states:
            sure = one.sure(vm, sure)
        if found := super()._admitted(snapshot, vm, sure):
            return found
        left = tuple(host for host in hosts if host not in sure) if self._budget.left > 0 else ()
        return tuple(host for host in super()._admitted(snapshot, vm, left) if self._judge(vm, host))

    def _judge(self, vm: Vm, host: str) -> bool:
        try:
            return not any(one.harmed(vm, host, self._budget) for one in self._states)
        except BudgetSpentError:
            return False


def balance_vms(snapshot: Snapshot, request: BalanceRequest) -> BalanceMove | None:
    """Balance HA first, then load, by moves that neither would take back.

    A move after which a failure is not survived that is survived now is not made, nor one of which that is
    not known within the steps of a call.
    """
    hosts, parameters = request.candidate_hosts, request.parameters
    clusters = {snapshot.host_by_id[host].cluster for host in hosts if host in snapshot.host_by_id}
    if len(clusters) != 1:
        return None
    (cluster,) = clusters
    asking = _Harmless(snapshot, cluster, parameters)
    over = whole_number(parameters, "ha_balance_over_utilization", OVER_UTILIZATION)
    measure = measure_of(parameters)
    if move := balance_ha_vms(snapshot, cluster, hosts, over, measure, asking):
        return move
    reserving = snapshot.cluster_by_id[cluster].ha_reservation
    spread = measure_spread(snapshot, cluster, hosts, over, measure)
    limits = limits_of(parameters)

    def crowds(vm: Vm, host: str) -> bool:
        then = spread.used[host] + added(snapshot, vm, host, measure)
        return reserving and vm.ha and then >= spread.threshold and then > spread.used[vm.host or ""]

    def permitted(state: Snapshot, vm: Vm, targets: tuple[str, ...]) -> tuple[str, ...]:
        def unfit(host: str) -> bool:
            return crowds(vm, host) or overloads(state, vm, host, limits)

        return asking.accepted(state, vm, targets, unfit)

    # Only hosts that have been overloaded for as long as the policy asks.
    minutes = whole_number(parameters, "ha_balance_cpu_over_commit_duration_minutes", 2)
    now = overloaded(snapshot, hosts, limits)
    busy = frozenset(host for host in now if request.overloaded_minutes.get(host, inf) >= minutes)
    return balance_load(snapshot, cluster, hosts, limits, busy, permitted)


BALANCE = Rule(
    name="HaReservationBalance",
    kind=UnitKind.BALANCE,
    twins=("None", "OptimalForEvenDistribution"),
    reads=frozenset((HOST_STATISTICS, VM_STATISTICS)),
    balance=balance_vms,
)
