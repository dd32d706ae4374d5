"""The engine's weight OptimalForCpuEvenDistribution: a VM goes where CPUs would be used least.

Source: EvenDistributionCPUWeightPolicyUnit, and PolicyUnitImpl, which stretches the weights. VMs with CPUs of
their own are not part of the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules.cpus import cpus_of, running_vms, total_load, vm_load
from ovirt_placement.rules.java.numbers import quotient, rounded
from ovirt_placement.rules.locations import vms_coming_to
from ovirt_placement.rules.parameters import decimal_number
from ovirt_placement.rules.verdict import Request

#: The engine's MaxSchedulerWeight.
_WORST = 1000
#: What a host with too many virtual CPUs is worse by.
_CROWDED = 1000
#: The parameter for virtual CPUs to a CPU of the host from which on it is crowded; 0 does not look at them.
_RATIO = "VCpuToPhysicalCpuRatio"


def scores(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """The engine's weight of each candidate host that is known: the smaller, the better, 1 to 1000.

    A host without statistics is as bad as the worst. The load of VMs that are to be placed counts on every
    host but their own.
    """
    vms = [snapshot.vm_by_id[vm] for vm in request.vms if vm in snapshot.vm_by_id]
    hosts = [snapshot.host_by_id[host] for host in request.candidate_hosts if host in snapshot.host_by_id]
    ratio = decimal_number(request.parameters, _RATIO)
    raw = {host.id: _raw_score(snapshot, host, vms, ratio) for host in hosts if host.cpu_percent is not None}
    return stretched(raw) | {host.id: _WORST for host in hosts if host.cpu_percent is None}


def host_score(load: int, cpus: int, *, crowded: bool = False) -> int:
    """The weight of one host before it is stretched: percent of its CPUs that would be used.

    The load is in percent of one CPU, that of VMs on their way included.
    """
    return rounded((_CROWDED if crowded else 1) * quotient(load, cpus))


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
    threads = snapshot.cluster_by_id[host.cluster].count_threads_as_cores
    cpus, coming = cpus_of(host, threads=threads), vms_coming_to(snapshot).get(host.id, ())
    added = [vm for vm in vms if vm.host != host.id]
    load = total_load(host, threads=threads) + sum(map(vm_load, (*coming, *added)))
    there = (*running_vms(snapshot, host.id), *coming, *added)
    crowded = ratio != 0 and quotient(sum(vm.vcpus for vm in there), cpus) >= ratio
    return host_score(load, cpus, crowded=crowded)
