"""How busy the CPUs of hosts are, as the engine counts it: in percent of one CPU, and in whole numbers.

A CPU is a core, or a thread where the cluster counts threads as cores. What each single CPU of a host does is
not known here: the engine, which may know, takes the use of the whole host where it does not.

Source: the engine's HostCpuLoadHelper.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from ovirt_placement.model import Cluster, Host, Snapshot, Vm

#: What a vCPU that does not run yet is taken to need, and what managing storage does: the engine's
#: VcpuConsumptionPercentage.
VCPU_PERCENT = 10


def cpus_of(host: Host, *, threads: bool) -> int:
    """The CPUs of a host: its threads, if these count and are known, or its cores."""
    return (host.threads or host.cores) if threads else host.cores


def cores_of(host: Host, cluster: Cluster) -> int:
    """What counts as a core is the cluster's choice: its threads, if they are known, or its cores."""
    return cpus_of(host, threads=cluster.count_threads_as_cores)


def total_load(host: Host, *, threads: bool) -> int:
    """Percent of one CPU that is in use, pending VMs apart; none where there are no statistics."""
    spm = VCPU_PERCENT if host.spm else 0
    return int(host.cpu_percent or 0) * cpus_of(host, threads=threads) + spm


def shared_load(host: Host, *, threads: bool) -> int:
    """Percent of all CPUs in use, rounded up."""
    cpus = cpus_of(host, threads=threads)
    return ceil(Fraction(total_load(host, threads=threads), cpus)) if cpus else 0


def vm_load(vm: Vm) -> int:
    """Percent of one CPU that a VM uses; where that is not known, what is taken of those that start."""
    if vm.host is None or vm.usage_cpu_percent is None:
        return VCPU_PERCENT * vm.vcpus
    return int(vm.usage_cpu_percent) * vm.vcpus


def running_vms(snapshot: Snapshot, host: str) -> list[Vm]:
    """The VMs that the engine counts as running on a host: one that waits for its launch is pending yet."""
    return [vm for vm in snapshot.vms_of_host.get(host, ()) if vm.status != "wait_for_launch"]
