"""The engine's own weights by load, 1 to 1000: lower is better, in the order that it records them.

Source: the engine's EvenDistributionCPUWeightPolicyUnit, HostCpuLoadHelper, PolicyUnitImpl (stretchScores)
and EvenDistributionMemoryWeightPolicyUnit. No host shows here what each of its CPUs does, and no VM has
CPUs of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ovirt_placement.model import Host, Snapshot, Vm

from ..core.vm_memory import required_mb
from .java.numbers import as_int, divided, float32, math_round
from .peers import coming_to, cpus
from .weights import Weights

#: The engine's MaxSchedulerWeight.
_WORST = 1000
#: Percent of a CPU that a vCPU needs of which nothing is measured, and that managing storage needs: the
#: engine's VcpuConsumptionPercentage and SpmVCpuConsumption.
_VCPU_PERCENT = 10
#: A host with more vCPUs to a CPU than the parameter allows is this many times as loaded.
_RATIO, _CROWDED = "VCpuToPhysicalCpuRatio", 1000


def even_cpu(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Weights:
    """Prefer hosts whose CPUs will have less to do; those without statistics are the worst."""
    loads = {host.id: _cpu_percent(snapshot, vms, host) for host in hosts if host.cpu_percent is not None}
    return _stretched(loads) | {host.id: _WORST for host in hosts if host.cpu_percent is None}


def _cpu_percent(snapshot: Snapshot, vms: Sequence[Vm], host: Host) -> int:
    arriving = [*coming_to(snapshot, host), *(vm for vm in vms if vm.host != host.id)]
    load = int(host.cpu_percent or 0) * cpus(host, snapshot) + _VCPU_PERCENT * host.spm
    load += sum(map(_load, arriving))
    return math_round(_penalty(snapshot, arriving, host) * divided(load, cpus(host, snapshot)))


def _load(vm: Vm) -> int:
    """Give what the VM needs, in percent of a CPU: what it uses where it runs, if that is known."""
    measured = vm.host is not None and vm.usage_cpu_percent is not None
    return vm.vcpus * (int(vm.usage_cpu_percent or 0) if measured else _VCPU_PERCENT)


def _penalty(snapshot: Snapshot, arriving: Sequence[Vm], host: Host) -> int:
    allowed = _number(snapshot.cluster_by_id[host.cluster].scheduling_properties.get(_RATIO, ""))
    if allowed == 0:
        return 1
    there = [vm for vm in snapshot.vms_of_host.get(host.id, ()) if vm.status != "wait_for_launch"]
    vcpus = sum(vm.vcpus for vm in (*there, *arriving))
    return 1 if divided(vcpus, cpus(host, snapshot)) < allowed else _CROWDED


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _stretched(loads: Mapping[str, int]) -> Weights:
    """Spread the loads from 1 to 1000; if all are equal, all are 1."""
    least, most = min(loads.values(), default=0), max(loads.values(), default=0)
    if least == most:
        return dict.fromkeys(loads, 1)
    return {
        host_id: math_round(1 + (load - least) / (most - least) * (_WORST - 1))
        for host_id, load in loads.items()
    }


def even_memory(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Weights:
    """Prefer hosts with more memory to hand out once the VMs that are not there yet have theirs."""
    most = float32(max(host.free_mb for host in hosts))
    weights = {}
    for host in hosts:
        arriving = sum(required_mb(vm) for vm in vms if vm.host != host.id)
        left = float32(float32(host.free_mb) - float32(arriving))
        share = float32(divided(float32(float32(left - 1) * (_WORST - 1)), float32(most - 1)))
        weights[host.id] = as_int(_WORST - math_round(share))
    return weights
