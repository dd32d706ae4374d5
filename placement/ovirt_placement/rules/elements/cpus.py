"""CPUs of hosts: how busy they are, and those that VMs have for themselves, as the engine counts them.

How busy they are is in percent of one CPU, and in whole numbers. A CPU is a core, or a thread where the
cluster counts threads as cores. What each single CPU of a host does is not known here: the engine, which may
know, takes the use of the whole host where it does not.

CPUs that VMs have for themselves the engine hands out socket by socket, the freest first: a virtual core goes
onto threads of one core, and virtual sockets are kept whole. Which CPUs running VMs were given is not shown
with them: they are handed out here again, in the order of ids, as the engine would.

Source: HostCpuLoadHelper; VdsCpuUnitPinningHelper and VdsCpuUnit, by which CPUPolicyUnit and
CpuPinningPolicyUnit count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Final

from ovirt_placement.lookups.index import once_per_snapshot
from ovirt_placement.model import Cluster, Host, Snapshot, Vm
from ovirt_placement.rules.elements.memory import vms_coming_to

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


#: Policies by which CPUs are a VM's own. The last one was planned, and is treated as the first.
ISOLATED: Final = "isolate_threads"
EXCLUSIVE: Final = frozenset({"dedicated", ISOLATED, "siblings"})
#: The VM takes the shape of its host, and comes to none where CPUs are another's own.
RESIZED: Final = "resize_and_pin_numa"


def is_exclusive(vm: Vm) -> bool:
    """Whether a VM has its CPUs for itself."""
    return vm.cpu_pinning in EXCLUSIVE


@dataclass
class Cpus:
    """The CPUs of a host: of each core the threads that are free, socket by socket."""

    threads: int
    sockets: list[list[int]] = field(default_factory=list)

    @classmethod
    def of_host(cls, host: Host) -> Cpus:
        """All of them free. Of a host whose processors are not known there are none."""
        threads = max(1, (host.threads or host.cores) // max(1, host.cores))
        per_socket = host.cores // max(1, host.sockets)
        return cls(threads, [[threads] * per_socket for _ in range(host.sockets)])

    def taken(self, *, threads: bool) -> int:
        """How many CPUs are somebody's own: threads, or cores that have none to share any more."""
        if threads:
            return sum(self.threads - free for socket in self.sockets for free in socket)
        return sum(free == 0 for socket in self.sockets for free in socket)

    def give(self, vm: Vm) -> bool:
        """Give a VM CPUs of its own, if there are enough of the shape that it has; else none.

        Of virtual sockets that a socket does not hold whole, as many cores are given back as the engine gives
        back: with isolated threads one for each virtual core, though each of its threads has one.
        """
        before = [list(socket) for socket in self.sockets]
        alone, cores_per_socket = vm.cpu_pinning == ISOLATED, _cores_per_socket(vm)
        given, sockets_left = 0, vm.cpu_sockets
        for _ in self.sockets:
            if sockets_left <= 0:
                break
            socket = max(self.sockets, key=sum)
            cores = self._isolate(socket, vm, given) if alone else self._dedicate(socket, vm, given)
            each = 1 if alone else vm.threads_per_core
            before_it, given = given, given + len(cores) * each
            whole = given // vm.threads_per_core - before_it // vm.threads_per_core
            over = whole % cores_per_socket
            for at in cores[len(cores) - over :]:
                socket[at] += self.threads if alone else vm.threads_per_core
            given -= over * each
            sockets_left -= whole // cores_per_socket
        if sockets_left > 0 or given != vm.vcpus:
            self.sockets = before
            return False
        return True

    def take_cpus(self, vm: Vm) -> None:
        """Take the CPUs that a VM has already: where they do not fit into what is left, wherever any are."""
        if self.give(vm):
            return
        needed = vm.vcpus * (self.threads if vm.cpu_pinning == ISOLATED else 1)
        for socket in self.sockets:
            for at, free in enumerate(socket):
                given = min(free, needed)
                socket[at] -= given
                needed -= given

    def _dedicate(self, socket: list[int], vm: Vm, given: int) -> list[int]:
        """Take threads of a socket for virtual cores; the core of each, once for each virtual core."""
        cores: list[int] = []
        for at in range(len(socket)):
            while socket[at] >= vm.threads_per_core and given < vm.vcpus:
                socket[at] -= vm.threads_per_core
                given += vm.threads_per_core
                cores.append(at)
        return cores

    def _isolate(self, socket: list[int], vm: Vm, given: int) -> list[int]:
        """Take a core of a socket for each virtual CPU."""
        free = [at for at in range(len(socket)) if socket[at] == self.threads]
        cores = free[: vm.vcpus - given]
        for at in cores:
            socket[at] = 0
        return cores


def _cores_per_socket(vm: Vm) -> int:
    return max(1, vm.vcpus // (max(1, vm.cpu_sockets) * vm.threads_per_core))


@once_per_snapshot
def any_exclusive(snapshot: Snapshot, cluster: str) -> bool:
    """Whether a VM of a cluster has CPUs of its own, or would have: else nothing is counted."""
    return any(is_exclusive(vm) for vm in snapshot.vms if vm.cluster == cluster)


def given_away(snapshot: Snapshot, host: Host, coming: Sequence[Vm] = ()) -> Cpus | None:
    """The CPUs of a host once VMs that run there, are on their way, and come have theirs.

    None if one of those that come finds too few of the shape that it has.
    """
    cpus = Cpus.of_host(host)
    there: Iterable[Vm] = (*snapshot.vms_of_host.get(host.id, ()), *vms_coming_to(snapshot).get(host.id, ()))
    asking = {vm.id for vm in coming}
    held = {vm.id: vm for vm in there if is_exclusive(vm) and (vm.id not in asking or vm.host == host.id)}
    for one in sorted(held):
        cpus.take_cpus(held[one])
    new = (vm for vm in coming if is_exclusive(vm) and vm.id not in held)
    return cpus if all(cpus.give(vm) for vm in new) else None
