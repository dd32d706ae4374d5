"""CPUs that VMs have for themselves: how many of a host's are left, and whether more can be given away.

The engine hands them out socket by socket, the freest first: a virtual core goes onto threads of one core,
and virtual sockets are kept whole. Which CPUs running VMs were given is not shown with them: they are handed
out here again, in the order of ids, as the engine would.

Source: VdsCpuUnitPinningHelper and VdsCpuUnit; CPUPolicyUnit and CpuPinningPolicyUnit count by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ovirt_placement.lookups.index import once_per_snapshot
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules.locations import vms_coming_to

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
    def of(cls, host: Host) -> Cpus:
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

    def take(self, vm: Vm) -> None:
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
    cpus = Cpus.of(host)
    there: Iterable[Vm] = (*snapshot.vms_of_host.get(host.id, ()), *vms_coming_to(snapshot).get(host.id, ()))
    asking = {vm.id for vm in coming}
    held = {vm.id: vm for vm in there if is_exclusive(vm) and (vm.id not in asking or vm.host == host.id)}
    for one in sorted(held):
        cpus.take(held[one])
    new = (vm for vm in coming if is_exclusive(vm) and vm.id not in held)
    return cpus if all(cpus.give(vm) for vm in new) else None
