"""The engine's own weights whose answers we can compute, each once, with what its shipped policies say.

Some distinguish hosts only by what is not part of the state, and say 1 of each. They still count: the first
unit in the selector's table decides in which order it comes upon equal hosts.

PreferredHosts: a VM that starts goes to a host of its own list, if there is one, whether or not it may be
migrated. OptimalForHaReservation, in whose place our `HaReservationWeight` stands: the VM itself counts where
it runs, and pending VMs do not count. OptimalForMemoryEvenDistribution: a VM goes where most memory would be
left. OptimalForCpuEvenDistribution: a VM goes where CPUs would be used least; VMs with CPUs of their own are
not part of the state. VmAffinityGroups, in whose place ours stands, counts all enabled groups, hard and soft
alike, also of other clusters, and takes pending members to be movable.

Source: PreferredHostsWeightPolicyUnit, HaReservationWeightPolicyUnit, EvenDistributionMemoryWeightPolicyUnit,
EvenDistributionCPUWeightPolicyUnit, VmAffinityWeightPolicyUnit, VmToHostAffinityWeightPolicyUnit, and
PolicyUnitImpl, which stretches weights and adds those of several VMs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from ovirt_placement.lookups import once_whatever_is_pending
from ovirt_placement.model import AffinityGroup, Host, Snapshot, Vm
from ovirt_placement.rules.affinity.groups import groups_among, worst_first
from ovirt_placement.rules.elements.ranks import (
    KeyOrder,
    competition_ranks,
    quotient,
    rounded,
    single,
    wrapped,
)
from ovirt_placement.rules.elements.resources import (
    cpus_of,
    required_mb,
    running_vms,
    total_load,
    vm_load,
    vms_coming_to,
)
from ovirt_placement.rules.elements.verdict import Request, decimal_number, whole_number
from ovirt_placement.rules.engine_affinity import peers_by_host


def summed(weights: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of the weights of several VMs by host, in the order in which the engine goes on with them.

    Source: PolicyUnitImpl.score of a group of VMs, which sums in a HashMap.
    """
    order, sums = KeyOrder(), Counter[str]()
    for ranks in weights:
        for host, weight in ranks.items():
            order.merge(host)
            sums[host] += weight
    return {host: sums[host] for host in order.listed()}


_NOT_PREFERRED = 10_000


def score_by_preference(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """The engine's weight of each candidate host: the smaller, the better; none if no VM is down."""
    hosts = request.candidate_hosts
    down = [vm for vm in request.known_vms(snapshot) if vm.status == "down"]
    preferred = [vm.pinned_hosts or hosts for vm in down]
    return summed({host: 0 if host in some else _NOT_PREFERRED for host in hosts} for some in preferred)


_FULLEST = 100
#: The parameter that weights are divided by.
_SCALE_DOWN = "ScaleDown"


def score_by_ha_vms(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """The engine's weight of each candidate host: the smaller, the better."""
    scale_down = max(1, whole_number(request.parameters, _SCALE_DOWN, 1))
    vms = request.known_vms(snapshot)
    return summed(_of_vm(snapshot, vm, request.candidate_hosts, scale_down) for vm in vms)


def _of_vm(snapshot: Snapshot, vm: Vm, hosts: Sequence[str], scale_down: int) -> dict[str, int]:
    if not vm.ha or not snapshot.cluster_by_id[vm.cluster].ha_reservation:
        return dict.fromkeys(hosts, 0)
    counts = _ha_vms(snapshot)
    return scaled({host: counts[vm.cluster, host] for host in hosts}, scale_down)


@once_whatever_is_pending
def _ha_vms(snapshot: Snapshot) -> Counter[tuple[str, str]]:
    """How many highly available VMs run on a host, by their cluster and the host."""
    return Counter((vm.cluster, vm.host) for vm in snapshot.vms if vm.ha and vm.host is not None)


def scaled(counts: Mapping[str, int], scale_down: int) -> dict[str, int]:
    """The fullest candidate counts 100, the others in proportion, all scaled down and rounded up."""
    fullest = max(counts.values(), default=0) or _FULLEST
    scaled_from = {
        count: ceil(single(rounded(single(single(single(count) / fullest) * _FULLEST)) / scale_down))
        for count in {*counts.values()}
    }
    return {host: scaled_from[count] for host, count in counts.items()}


#: The engine's MaxSchedulerWeight.
_WORST = 1000
#: What the fullest host has to hand out if there is none.
_NO_HOST = 2


def score_by_memory(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """The engine's weight of each candidate host that is known: the smaller, the better.

    The memory of VMs that are to be placed counts on every host but their own; huge pages make no difference.
    """
    vms = request.known_vms(snapshot)
    hosts = [snapshot.host_by_id[host] for host in request.candidate_hosts if host in snapshot.host_by_id]
    most = max((host.free_mb for host in hosts), default=_NO_HOST)
    return {
        host.id: memory_score(host.free_mb, most, sum(required_mb(vm) for vm in vms if vm.host != host.id))
        for host in hosts
    }


def memory_score(free_mb: int, most_free_mb: int, added_mb: int) -> int:
    """The weight of one host, where the candidate with most memory to hand out has so much.

    Numbers are those of the engine: of single precision, and rounded to a thousand steps, so that hosts tie
    which differ by little.
    """
    left = single(single(single(free_mb) - added_mb) - 1)
    share = single(quotient(single(left * (_WORST - 1)), single(single(most_free_mb) - 1)))
    return wrapped(_WORST - rounded(share))


#: What a host with too many virtual CPUs is worse by.
_CROWDED = 1000
#: The parameter for virtual CPUs to a CPU of the host from which on it is crowded; 0 does not look at them.
_RATIO = "VCpuToPhysicalCpuRatio"


def score_by_cpu(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """The engine's weight of each candidate host that is known: the smaller, the better, 1 to 1000.

    A host without statistics is as bad as the worst. The load of VMs that are to be placed counts on every
    host but their own.
    """
    vms = request.known_vms(snapshot)
    hosts = [snapshot.host_by_id[host] for host in request.candidate_hosts if host in snapshot.host_by_id]
    ratio = decimal_number(request.parameters, _RATIO)
    raw = {host.id: _raw_score(snapshot, host, vms, ratio) for host in hosts if host.cpu_percent is not None}
    return stretched(raw) | {host.id: _WORST for host in hosts if host.cpu_percent is None}


def stretched(weights: Mapping[str, int]) -> dict[str, int]:
    """Spread weights from 1 to 1000, in whole steps: hosts tie that differ by little of the whole spread."""
    least, most = min(weights.values(), default=0), max(weights.values(), default=0)
    if least == most:
        return dict.fromkeys(weights, 1)
    return {
        host: rounded(1 + (weight - least) / (most - least) * (_WORST - 1))
        for host, weight in weights.items()
    }


def _raw_score(snapshot: Snapshot, host: Host, vms: Sequence[Vm], ratio: float) -> int:
    """The weight of one host before it is stretched: percent of its CPUs that would be used."""
    threads = snapshot.cluster_by_id[host.cluster].count_threads_as_cores
    cpus, coming = cpus_of(host, threads=threads), vms_coming_to(snapshot).get(host.id, ())
    added = [vm for vm in vms if vm.host != host.id]
    load = total_load(host, threads=threads) + sum(map(vm_load, (*coming, *added)))
    there = (*running_vms(snapshot, host.id), *coming, *added)
    crowded = ratio != 0 and quotient(sum(vm.vcpus for vm in there), cpus) >= ratio
    return rounded((_CROWDED if crowded else 1) * quotient(load, cpus))


#: Priorities of violated groups from the highest down, fixed positive peers and positive peers, both negated.
Burden = tuple[tuple[int, ...], int, int]


def score_by_vm_groups(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """The engine's weight of each candidate host, the best first: 1, and how many hosts are better."""
    among = groups_among(snapshot.groups_of_vm, request.vms)
    groups = {group.id: group for group in among if group.vms_rule.enabled}
    there = {name: peers_by_host(snapshot, group, request.vms) for name, group in groups.items()}
    # Most hosts have none of the peers, and all of these the same burden.
    without = _burden(snapshot, groups, {})
    burdens = dict.fromkeys(request.candidate_hosts, without)
    for host in frozenset().union(*there.values()).intersection(burdens):
        here = {name: peers[host] for name, peers in there.items() if host in peers}
        burdens[host] = _burden(snapshot, groups, here)
    return competition_ranks(burdens)


def _burden(
    snapshot: Snapshot, groups: dict[str, AffinityGroup], here: Mapping[str, Sequence[str]]
) -> Burden:
    """The burden of a host with these peers of each group."""
    violated = (group for name, group in groups.items() if (name in here) is not group.vms_rule.positive)
    joined = {vm for name, peers in here.items() if groups[name].vms_rule.positive for vm in peers}
    fixed = sum(vm not in snapshot.pending_hosts and not snapshot.vm_by_id[vm].movable for vm in joined)
    return worst_first(violated), -fixed, -len(joined)


def score_by_host_groups(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """The engine's weight of each candidate host: the smaller, the better."""

    def rank_hosts(vm: str) -> dict[str, int]:
        """The best first: 1, and how many hosts violate soft groups of less priority or fewer."""
        soft = [
            (group, snapshot.group_hosts[group.id], group.hosts_rule.positive)
            for group in snapshot.groups_of_vm.get(vm, ())
            if group.hosts_rule.soft
        ]
        return competition_ranks(
            {
                host: worst_first(group for group, own, positive in soft if (host in own) is not positive)
                for host in request.candidate_hosts
            }
        )

    return summed(map(rank_hosts, request.vms))


class EnginesWeight(NamedTuple):
    """One of them."""

    #: By which a cluster's state knows its factor.
    name: str
    #: The id of its unit.
    unit: str
    #: The factor that it has in the policies which the engine ships.
    factor: int
    #: Its weight of each candidate host, in the order in which it lists them; hosts may be left out.
    scores: Callable[[Snapshot, Request], dict[str, int]]


def _alike(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """What a weight says that sees no difference, of all VMs together."""
    return dict.fromkeys(request.candidate_hosts, 1)


def _alike_to_each(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """The same of a weight that is asked VM by VM."""
    return summed(dict.fromkeys(request.candidate_hosts, 1) for _ in request.vms)


#: Source: InternalPolicyUnits, InternalClusterPolicies.
ENGINES_WEIGHTS = (
    EnginesWeight("even_cpu_weight", "7db4ab05-81ab-42e8-868a-aee2df483edb", 2, score_by_cpu),
    EnginesWeight("even_memory_weight", "4134247a-9c58-4b9a-8593-530bb9e37c59", 1, score_by_memory),
    EnginesWeight("preferred_hosts_weight", "591cdb81-ba67-45b4-9642-e28f61a97d57", 99, score_by_preference),
    EnginesWeight("ha_weight", "7f262d70-6cac-11e3-981f-0800200c9a66", 1, score_by_ha_vms),
    EnginesWeight("vm_affinity_weight", "84e6ddee-ab0d-42dd-82f0-c297779db567", 1, score_by_vm_groups),
    EnginesWeight("vm_to_host_weight", "427aed70-dae3-48ba-8fe9-a902a9d563c8", 20, score_by_host_groups),
    # HostedEngineHAClusterWeightPolicyUnit: the scores of hosts, for the engine's own VM alone.
    EnginesWeight("HA", "98e92667-6161-41fb-b3fa-34f820ccbc4b", 1, _alike),
    # HighPerformanceCpuPolicyUnit: sockets and cores, for VMs that are pinned or of high performance.
    EnginesWeight("CPU for high performance VMs", "71931e14-f0e6-4f91-a7c8-d494a26e3a09", 4, _alike_to_each),
    # CpuAndNumaPinningWeightPolicyUnit: NUMA nodes, for VMs that are pinned to some.
    EnginesWeight("CPU and NUMA pinning compatibility", "1b14ac11-20e9-4593-a149-2eb83c60a330", 5, _alike),
)
