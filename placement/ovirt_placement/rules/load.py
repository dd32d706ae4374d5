"""Load as the engine counts it, and moves that even it out: its policy evenly_distributed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from math import ceil

from msgspec.structs import asdict

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.record import Record
from ovirt_placement.rules.affinity.filters import HOST_FILTER, VM_FILTER
from ovirt_placement.rules.affinity.groups import groups_of, listed_hosts, members, peers_on
from ovirt_placement.rules.doubts import doubt
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.elements.ranks import in_order, quotient
from ovirt_placement.rules.elements.resources import (
    cpus_of,
    required_mb,
    running_vms,
    shared_load,
    total_load,
)
from ovirt_placement.rules.elements.rule import Rule, accepted_hosts
from ovirt_placement.rules.elements.verdict import BalanceMove, Request, whole_number
from ovirt_placement.rules.placement_rules.in_force import constraints_of

#: A host takes VMs below this part of the high utilisation, in percent, and this many points below it.
_LOW_PERCENT = 80
_LOW_DISTANCE = 10
_FULL = 100


def may_move(snapshot: Snapshot, vm: Vm) -> bool:
    """Whether a VM runs, is movable, and is not on its way already; the hosted engine never is.

    Nothing is moved while something is not known yet that could forbid it.
    """
    resting = vm.movable and vm.status == "up" and vm.id not in snapshot.pending_hosts
    return resting and not doubt(snapshot, vm.cluster)


def kept_free(snapshot: Snapshot, host: str) -> bool:
    """Whether a host is a dedicated failover host, which nothing is sent to."""
    known = snapshot.host_by_id.get(host)
    return known is not None and known.failover


def admitted(
    snapshot: Snapshot, vm: Vm, targets: tuple[str, ...], filters: Iterable[Rule] = (VM_FILTER, HOST_FILTER)
) -> tuple[str, ...]:
    """The targets that filters accept which the policy may ask: the engine would choose no other."""
    cluster = snapshot.cluster_by_id[vm.cluster]
    asked = (rule for rule in filters if not rule.on_request or rule.enabled_in(cluster))
    request = Request((vm.id,), targets, parameters=cluster.scheduling_properties, explained=False)
    return accepted_hosts(snapshot, asked, request)


def choose_move(snapshot: Snapshot, moves: Iterable[BalanceMove]) -> BalanceMove | None:
    """The first move that leaves no rule worse off, with the hosts that leave none so; else the first.

    What violates a rule would be moved back by who repairs it, again and again: a soft one, or a hard one
    that lets VMs that run migrate. Of a hard group that is split already the filters accept each host.
    """
    first = None
    for move in moves:
        first = first or move
        if harmless := _harmless(snapshot, snapshot.vm_by_id[move.vm], move.hosts):
            return BalanceMove(move.vm, harmless)
    return first


def _harmless(snapshot: Snapshot, vm: Vm, targets: tuple[str, ...]) -> tuple[str, ...]:
    """The targets on which no rule of a VM would be violated more than it is where the VM runs."""
    left, source = targets, vm.host or ""
    for group in groups_of(snapshot).get(vm.id, ()):
        if group.vms_rule.enabled:
            others = tuple(peer for peer in members(snapshot)[group.id] if peer != vm.id)
            peers = peers_on(snapshot, (*targets, source), others)
            sign = -1 if group.vms_rule.positive else 1
            left = tuple(host for host in left if sign * peers[host] <= sign * peers[source])
        if group.hosts_rule.enabled:
            meant = listed_hosts(snapshot)[group.id]
            wanted = group.hosts_rule.positive
            if (source in meant) is wanted:
                left = tuple(host for host in left if (host in meant) is wanted)
    placement = SnapshotPlacement(snapshot)
    for rule in constraints_of(snapshot, vm.id):
        judge = rule.judge_step(vm.id, placement, frozenset())
        left = tuple(host for host in left if judge(host) is None)
    return left


class LoadLimits(Record, frozen=True):
    """The engine's parameters, by their meaning; the defaults are the engine's own."""

    #: Percent of CPU use from which on a host is overloaded.
    high_utilization: int = 75
    #: MiB of free memory below which a host is overloaded.
    max_free_memory_for_over_utilized: int = 0
    #: MiB of free memory above which a host can take VMs from one that is short of it.
    min_free_memory_for_under_utilized: int = 0
    #: Virtual CPUs per core from which on a host is overloaded; 0 does not look at them.
    vcpu_to_physical_cpu_ratio: float = 0

    @property
    def low_utilization(self) -> int:
        """Percent of CPU use below which a host takes VMs, in whole numbers as the engine divides."""
        return min(self.high_utilization * _LOW_PERCENT // 100, self.high_utilization - _LOW_DISTANCE)


def limits_of(parameters: Mapping[str, str]) -> LoadLimits:
    """The limits that a policy sets by the parameters of our balance."""
    usual = asdict(LoadLimits())
    return LoadLimits(
        **{name: whole_number(parameters, f"ha_balance_{name}", default) for name, default in usual.items()}
    )


def balance_load(
    snapshot: Snapshot,
    cluster_id: str,
    candidate_hosts: tuple[str, ...],
    limits: LoadLimits,
    busy: frozenset[str],
    permitted: Callable[[Snapshot, Vm, tuple[str, ...]], tuple[str, ...]] = admitted,
) -> BalanceMove | None:
    """Choose a VM to move off an overloaded host, the least busy first; None if there is nothing to do.

    Of what the engine would try one after the other, that is the first which may move to a target that
    is `permitted`, and no failover host. One that leaves no rule worse off comes before one that does.
    """

    def moves() -> Iterator[BalanceMove]:
        for move in proposals(snapshot, cluster_id, candidate_hosts, limits, busy):
            vm = snapshot.vm_by_id[move.vm]
            if may_move(snapshot, vm):
                free = tuple(host for host in move.hosts if not kept_free(snapshot, host))
                if fits := permitted(snapshot, vm, free):
                    yield BalanceMove(vm.id, fits)

    return choose_move(snapshot, moves())


def proposals(
    snapshot: Snapshot,
    cluster_id: str,
    candidate_hosts: tuple[str, ...],
    limits: LoadLimits,
    busy: frozenset[str],
) -> Iterator[BalanceMove]:
    """What the engine would try, in its order: of each overloaded host the VMs, the least busy first.

    CPU comes before memory. Of the hosts at or above the high utilisation only those in `busy` count: that
    they have been for long enough is known to who watches them. The engine would let the VM stay as well,
    where its filters want that.
    """
    hosts = [snapshot.host_by_id[host] for host in candidate_hosts if host in snapshot.host_by_id]
    if len(hosts) < 2:
        return
    threads = snapshot.cluster_by_id[cluster_id].count_threads_as_cores
    too_busy = busy & overloaded(snapshot, candidate_hosts, limits)

    def usage(host: Host) -> int:
        return _usage(host, threads=threads)

    # Of hosts that are equally busy, or idle, in the order of the hosts.
    busiest = [
        host
        for host in hosts
        if (host.id in too_busy and snapshot.vms_of_host.get(host.id)) or _crowded(snapshot, host, limits)
    ]
    busiest.sort(key=usage, reverse=True)
    idle = [host for host in hosts if _usage(host, threads=False) < limits.low_utilization]
    idle.sort(key=usage)
    roomy = [host for host in hosts if host.free_mb > limits.min_free_memory_for_under_utilized]
    short_of_memory = [
        host
        for host in hosts
        if host.free_mb < limits.max_free_memory_for_over_utilized
        and len(snapshot.vms_of_host.get(host.id, ())) > 1
    ]
    for sources, targets in ((busiest, idle), (short_of_memory, roomy)):
        for source in sources:
            there = (vm for vm in snapshot.vms_of_host.get(source.id, ()) if vm.migratable)
            for vm in sorted(there, key=lambda vm: (_load(vm), in_order(vm.id))):
                fits = tuple(host.id for host in targets if _fits(host, vm, limits))
                if fits:
                    yield BalanceMove(vm.id, fits)


def overloaded(snapshot: Snapshot, candidate_hosts: tuple[str, ...], limits: LoadLimits) -> frozenset[str]:
    """Hosts at or above the high utilisation at this moment."""
    known = (snapshot.host_by_id[host] for host in candidate_hosts if host in snapshot.host_by_id)
    return frozenset(
        host.id
        for host in known
        if host.cpu_percent is not None
        and shared_load(host, threads=snapshot.cluster_by_id[host.cluster].count_threads_as_cores)
        >= limits.high_utilization
    )


def _crowded(snapshot: Snapshot, host: Host, limits: LoadLimits, coming: int = 0) -> bool:
    """Whether a host has too many virtual CPUs for its own, with those that come."""
    vcpus = sum(vm.vcpus for vm in running_vms(snapshot, host.id)) + coming
    cpus = cpus_of(host, threads=snapshot.cluster_by_id[host.cluster].count_threads_as_cores)
    ratio = limits.vcpu_to_physical_cpu_ratio
    return ratio > 0 and quotient(vcpus, cpus) >= ratio


def overloads(snapshot: Snapshot, vm: Vm, target: str, limits: LoadLimits) -> bool:
    """Whether a host would have to give a VM away in its turn if one came: the engine does not ask that."""
    host = snapshot.host_by_id[target]
    load = total_load(host, threads=False) + _load(vm)
    return (
        ceil(Fraction(load, max(1, host.cores))) >= limits.high_utilization
        or host.free_mb - required_mb(vm) < limits.max_free_memory_for_over_utilized
        or _crowded(snapshot, host, limits, vm.vcpus)
    )


def _fits(host: Host, vm: Vm, limits: LoadLimits) -> bool:
    """Whether a target stays within the limits with the VM, by its cores, and by the VM's memory alone."""
    if host.id == vm.host or host.cpu_percent is None:
        return False
    load, cores = total_load(host, threads=False) + _load(vm), cpus_of(host, threads=False)
    return (
        cores > 0
        and Fraction(load, cores) <= limits.high_utilization
        and host.free_mb - vm.memory_mb > limits.max_free_memory_for_over_utilized
    )


def _usage(host: Host, *, threads: bool) -> int:
    """Percent of CPU in use; a host of which that is not known counts as full."""
    return _FULL if host.cpu_percent is None else shared_load(host, threads=threads)


def _load(vm: Vm) -> int:
    """Percent of one core that a VM uses; none where that is not known."""
    return int(vm.usage_cpu_percent or 0) * vm.vcpus
