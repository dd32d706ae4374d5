"""Memory and CPUs: what the engine asks of a host for a VM, and whether that is there.

How busy CPUs are is in percent of one CPU, and in whole numbers. A CPU is a core, or a thread where the
cluster counts threads as cores. What each single CPU of a host does is not known here: the engine, which
may know, takes the use of the whole host where it does not.

CPUs that VMs have for themselves the engine hands out socket by socket, the freest first: a virtual core
goes onto threads of one core, and virtual sockets are kept whole. Which CPUs running VMs were given is not
shown with them: they are handed out here again, in the order of ids, as the engine would.

Source: the engine's SlaValidator, VmOverheadCalculatorImpl, HugePageUtils, and HostMonitoring, which
charges a host for the VMs that run there; HostCpuLoadHelper; VdsCpuUnitPinningHelper and VdsCpuUnit, by
which CPUPolicyUnit and CpuPinningPolicyUnit count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Final, NamedTuple

from msgspec.structs import replace

from ovirt_placement.lookups import once_per_snapshot
from ovirt_placement.model import Cluster, Host, Pending, Snapshot, Vm
from ovirt_placement.model.snapshot import HOST_STATISTICS, grouped

#: MiB of each VM whatever its size: QEMU itself.
_FIXED_MB = 64
_FIXED_ON_POWER_MB = 100
#: One MiB of page tables for this many of memory.
_PAGED_MB = 512
_PAGED_ON_POWER_MB = 64
_VCPU_MB = _IO_THREAD_MB = 8
#: The custom property that names the size of a VM's huge pages in KiB.
_HUGE_PAGES = "hugepages"
_KIB = 1024
#: What is physically free is shown rounded to one part in this many of a host's memory.
_SHOWN_PARTS = 100


def used_mb(vm: Vm) -> int:
    """What of its memory a VM really uses, in MiB: all of it where that is not known."""
    return round(vm.memory_mb * (100.0 if vm.usage_mem_percent is None else vm.usage_mem_percent) / 100)


def promised_mb(vm: Vm, entry: Pending | None) -> int:
    """What a host has handed out to a VM on its way there, in MiB."""
    size_mb = vm.memory_mb if entry is None or entry.memory_mb is None else entry.memory_mb
    return size_mb + overhead_mb(vm)


def with_arrived(host: Host, *vms: Vm) -> Host:
    """The host once VMs have come to it that were elsewhere before."""
    free, pages = host.memory_free_mb, _huge_pages(vms)
    return replace(
        host,
        free_mb=host.free_mb - sum(map(required_mb, vms)),
        memory_free_mb=None if free is None else max(0, free - sum(map(used_mb, vms))),
        free_huge_pages={size: max(0, count - pages[size]) for size, count in host.free_huge_pages.items()},
    )


def with_left(host: Host, *vms: Vm) -> Host:
    """The host once VMs have left it; that the huge pages that they had are kept ready is not known."""
    free = host.memory_free_mb
    return replace(
        host,
        free_mb=host.free_mb + sum(map(required_mb, vms)),
        memory_free_mb=None if free is None else min(host.memory_mb, free + sum(map(used_mb, vms))),
    )


@once_per_snapshot
def vms_coming_to(snapshot: Snapshot) -> dict[str, tuple[Vm, ...]]:
    """The VMs that are on their way to a host, by the host."""
    known = snapshot.vm_by_id
    ways = snapshot.pending_hosts.items()
    return grouped((host, known[vm]) for vm, hosts in ways if vm in known for host in hosts)


class Lack(NamedTuple):
    """What a host has too little of, memory to hand out or physical memory with swap; what it has, in MiB."""

    physical: bool
    free_mb: int


def static_overhead_mb(vm: Vm) -> int:
    """What QEMU takes at once besides the VM's own memory, in MiB."""
    if vm.architecture.startswith("ppc"):
        most_mb = max(vm.memory_mb, vm.max_memory_mb or 0)
        return _FIXED_ON_POWER_MB + (1 << max(0, most_mb - 1).bit_length()) // _PAGED_ON_POWER_MB
    return _FIXED_MB + vm.memory_mb // _PAGED_MB


def overhead_mb(vm: Vm) -> int:
    """What QEMU may take in all besides the VM's own memory, in MiB."""
    return static_overhead_mb(vm) + _VCPU_MB * vm.vcpus + _IO_THREAD_MB * vm.io_threads + vm.video_mb


def required_mb(vm: Vm) -> int:
    """What a VM takes of the memory that its host can hand out, in MiB."""
    return vm.memory_mb + overhead_mb(vm)


def lack(snapshot: Snapshot, host: Host, vms: Sequence[Vm]) -> Lack | None:
    """What the host lacks for the VMs to come there together; None if it has enough.

    Physical memory is looked at where it and swap are known. Pages that the host must make huge for the VMs
    do not fit into swap.
    """
    huge_mb, room = _pages_to_make_mb(snapshot, host, vms), physical_room(snapshot, host)
    if room is not None and (
        room.memory_mb < huge_mb or room.memory_mb + room.swap_mb - huge_mb < sum(map(physical_mb, vms))
    ):
        return Lack(physical=True, free_mb=(host.memory_free_mb or 0) + room.swap_mb)
    if handed_out_mb(snapshot, host, vms) > host.free_mb:
        return Lack(physical=False, free_mb=host.free_mb)
    return None


def handed_out_mb(snapshot: Snapshot, host: Host, vms: Sequence[Vm]) -> int:
    """What a host hands out when VMs come there together, in MiB: huge pages that are ready cost nothing."""
    made_mb = _pages_to_make_mb(snapshot, host, vms)
    return sum(_small_pages_mb(vm) + overhead_mb(vm) for vm in vms) + made_mb


class PhysicalRoom(NamedTuple):
    """What a host has physically free, in MiB."""

    memory_mb: int
    swap_mb: int


def physical_room(snapshot: Snapshot, host: Host) -> PhysicalRoom | None:
    """Memory and swap that are free; None if that is not known.

    What QEMU will take at once for VMs on their way is deducted. The engine knows it exactly, but shows it in
    whole percents: what may be there is not taken to lack.
    """
    if host.memory_free_mb is None or host.swap_free_mb is None:
        return None
    coming_mb = sum(map(static_overhead_mb, vms_coming_to(snapshot).get(host.id, ())))
    return PhysicalRoom(host.memory_free_mb + host.memory_mb // _SHOWN_PARTS - coming_mb, host.swap_free_mb)


def physical_mb(vm: Vm) -> int:
    """What must be physically free for a VM, huge pages apart, in MiB."""
    return _small_pages_mb(vm) + static_overhead_mb(vm)


def huge_page_kib(vm: Vm) -> int | None:
    """The size of the huge pages that hold a VM's memory; None if none do."""
    try:
        kib = int(vm.custom_properties.get(_HUGE_PAGES, "0"))
    except ValueError:
        return None
    return kib if kib > 0 else None


def all_take_what_they_need(snapshot: Snapshot, hosts: Iterable[str], vms: Iterable[Vm]) -> bool:
    """Whether VMs need as much of each of some hosts, wherever they come to, as `required_mb` says.

    Where huge pages are ready for one it needs less, and more if the last of its pages is not full.
    """
    ready = {
        size for host in hosts for size, count in snapshot.host_by_id[host].free_huge_pages.items() if count
    }
    sizes = ((vm, huge_page_kib(vm)) for vm in vms)
    return not any(kib is not None and (kib in ready or vm.memory_mb * _KIB % kib) for vm, kib in sizes)


def _huge_pages(vms: Sequence[Vm]) -> Counter[int]:
    """How many huge pages VMs need, by size."""
    needed: Counter[int] = Counter()
    for vm in vms:
        kib = huge_page_kib(vm)
        if kib is not None:
            needed[kib] += -(-vm.memory_mb * _KIB // kib)
    return needed


def _pages_to_make_mb(snapshot: Snapshot, host: Host, vms: Sequence[Vm]) -> int:
    """The huge pages that the host does not have ready for the VMs.

    The engine looks up how many are pending by the number of free pages, not by their size, and so deducts
    hardly ever any: who deducted them would refuse hosts that it accepts.
    """
    needed = _huge_pages(vms)
    if not needed or HOST_STATISTICS in snapshot.unread:
        return 0  # what has not been read refuses nothing
    pending = _huge_pages(vms_coming_to(snapshot).get(host.id, ()))
    kib = 0
    for size, count in needed.items():
        free = host.free_huge_pages.get(size, 0)
        kib += size * max(0, count - max(0, free - pending[free]))
    return -(-kib // _KIB)


def _small_pages_mb(vm: Vm) -> int:
    return 0 if huge_page_kib(vm) is not None else vm.memory_mb


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

    def dedicated_cpus(self, *, threads: bool) -> int:
        """How many CPUs are dedicated to VMs: threads, or cores that have none to share any more."""
        if threads:
            return sum(self.threads - free for socket in self.sockets for free in socket)
        return sum(free == 0 for socket in self.sockets for free in socket)

    def give(self, vm: Vm) -> bool:
        """Give a VM CPUs of its own, if there are enough of the shape that it has; else none.

        Of virtual sockets that a socket does not hold whole, as many cores are given back as the engine gives
        back: with isolated threads one for each virtual core, though each of its threads has one.
        """
        before = [list(socket) for socket in self.sockets]
        alone = vm.cpu_pinning == ISOLATED
        size, each = (self.threads, 1) if alone else (vm.threads_per_core, vm.threads_per_core)
        cores_per_socket = max(1, vm.vcpus // (max(1, vm.cpu_sockets) * vm.threads_per_core))
        given, sockets_left = 0, vm.cpu_sockets
        for _ in self.sockets:
            if sockets_left <= 0:
                break
            socket = max(self.sockets, key=sum)
            # The core of each virtual core, or of each virtual CPU where these have whole ones.
            cores: list[int] = []
            for at in range(len(socket)):
                while socket[at] >= size and given + len(cores) * each < vm.vcpus:
                    socket[at] -= size
                    cores.append(at)
            before_it, given = given, given + len(cores) * each
            whole = given // vm.threads_per_core - before_it // vm.threads_per_core
            over = whole % cores_per_socket
            for at in cores[len(cores) - over :]:
                socket[at] += size
            given -= over * each
            sockets_left -= whole // cores_per_socket
        if sockets_left > 0 or given != vm.vcpus:
            self.sockets = before
            return False
        return True

    def claim_cpus(self, vm: Vm) -> None:
        """Take the CPUs that a VM has already: where they do not fit into what is left, wherever any are."""
        if self.give(vm):
            return
        needed = vm.vcpus * (self.threads if vm.cpu_pinning == ISOLATED else 1)
        for socket in self.sockets:
            for at, free in enumerate(socket):
                given = min(free, needed)
                socket[at] -= given
                needed -= given


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
        cpus.claim_cpus(held[one])
    new = (vm for vm in coming if is_exclusive(vm) and vm.id not in held)
    return cpus if all(cpus.give(vm) for vm in new) else None
