"""The one account of memory: what the engine asks of a host for a VM, and whether that is there.

Source: the engine's SlaValidator, VmOverheadCalculatorImpl, HugePageUtils, and HostMonitoring, which charges
a host for the VMs that run there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import inf
from operator import is_
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.lookups.index import once_per_snapshot
from ovirt_placement.model import Host, Pending, Snapshot, Vm
from ovirt_placement.model.snapshot import HOST_STATISTICS

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
_MOST_NAMED = 5
#: An engine counts a VM that has arrived within some 21 s, and its hosts are read every 15.
_ARRIVAL_SECONDS = 45.0
#: What is physically free is shown rounded to one part in this many of a host's memory.
_SHOWN_PARTS = 100


def used_mb(vm: Vm) -> int:
    """What of its memory a VM really uses, in MiB: all of it where nobody knows."""
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
    """The host once VMs have left it; whether the huge pages that they had are kept ready nobody knows."""
    free = host.memory_free_mb
    return replace(
        host,
        free_mb=host.free_mb + sum(map(required_mb, vms)),
        memory_free_mb=None if free is None else min(host.memory_mb, free + sum(map(used_mb, vms))),
    )


class Believed(NamedTuple):
    """What was believed of a host, and of what that was concluded."""

    reported: Host
    percent: int
    vms: Sequence[Vm]
    host: Host
    #: When each of the VMs was first seen there, in seconds; None until the engine has counted them once.
    seen: Mapping[str, float] | None


def believed(snapshot: Snapshot, known: dict[str, Believed] | None = None, now: float = 0.0) -> Snapshot:
    """No host with more memory to hand out than the VMs there leave; one that reported more is marked.

    For some 14 s after its start the engine reports each host as if it were empty, until it counts its VMs
    again. What it reserves, which the API does not show, comes on top: the memory may still be less. Nor is
    a VM that has arrived counted for some 14 s, once it is pending no more: where all others are, it is
    deducted here, and the host is not marked.

    `known` is what was believed of each host, by its id: what has not changed since is not added up again,
    and VMs that came lately are distinguished from others. `now` is in seconds, of the clock by which it was
    filled.
    """
    percent = {cluster.id: cluster.memory_overcommit_percent for cluster in snapshot.clusters}
    known = {} if known is None else known
    hosts = tuple(
        _believed_of(host, percent.get(host.cluster, 100), snapshot, known, now) for host in snapshot.hosts
    )
    if all(map(is_, hosts, snapshot.hosts)):
        return snapshot
    return replace(snapshot, hosts=hosts)


def _believed_of(
    host: Host, percent: int, snapshot: Snapshot, known: dict[str, Believed], now: float
) -> Host:
    vms, last = snapshot.vms_of_host.get(host.id, ()), known.get(host.id)
    if last is None or last.reported is not host or last.percent != percent or last.vms != vms:
        last = known[host.id] = _believe(host, percent, vms, None if last is None else last.seen, now)
    return last.host


def _believe(
    host: Host, percent: int, vms: Sequence[Vm], seen: Mapping[str, float] | None, now: float
) -> Believed:
    """A VM that is being launched counts as pending, and is deducted already.

    Doubtful is only more than the memory of VMs leaves: what they take besides is an estimate where devices
    were not read. A host that was never reached has no memory yet.
    """
    taking = [vm for vm in vms if vm.status != "wait_for_launch"]
    whole_mb = host.memory_mb * percent // 100
    since = None if seen is None else {vm.id: seen.get(vm.id, now) for vm in vms}

    def fits(some: Iterable[Vm]) -> bool:
        return host.free_mb <= max(0, whole_mb - sum(vm.memory_mb for vm in some))

    if not vms or not host.memory_mb or fits(taking):
        return Believed(host, percent, vms, host, since or dict.fromkeys((vm.id for vm in vms), -inf))
    most_mb = max(0, whole_mb - sum(map(required_mb, taking)))
    if since is not None and fits(vm for vm in taking if now - since[vm.id] >= _ARRIVAL_SECONDS):
        free_mb = host.free_mb
        for vm in sorted(taking, key=lambda vm: since[vm.id], reverse=True):
            if free_mb > most_mb:
                free_mb -= required_mb(vm)
        return Believed(host, percent, vms, replace(host, free_mb=max(0, free_mb)), since)
    return Believed(host, percent, vms, replace(host, free_mb=most_mb, memory_uncounted=True), since)


def uncounted(snapshot: Snapshot, cluster: str) -> str:
    """Why the memory of a cluster's hosts proves nothing now, in words; empty if it does."""
    hosts = [host.name for host in snapshot.hosts_of_cluster.get(cluster, ()) if host.memory_uncounted]
    if not hosts:
        return ""
    named = ", ".join(hosts[:_MOST_NAMED])
    if len(hosts) > _MOST_NAMED:
        named += f" and {len(hosts) - _MOST_NAMED} more"
    return f"the engine has not counted the memory of all VMs on {named} yet"


@once_per_snapshot
def vms_coming_to(snapshot: Snapshot) -> dict[str, tuple[Vm, ...]]:
    """The VMs that are on their way to a host, by the host."""
    found: dict[str, tuple[Vm, ...]] = {}
    for name, hosts in snapshot.pending_hosts.items():
        for host in hosts if name in snapshot.vm_by_id else ():
            found[host] = (*found.get(host, ()), snapshot.vm_by_id[name])
    return found


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
    if sum(_small_pages_mb(vm) + overhead_mb(vm) for vm in vms) + huge_mb > host.free_mb:
        return Lack(physical=False, free_mb=host.free_mb)
    return None


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
    reported = vm.custom_properties.get(_HUGE_PAGES)
    return _whole_number(reported) if reported is not None else None


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


@lru_cache(maxsize=64)
def _whole_number(text: str) -> int | None:
    try:
        number = int(text)
    except ValueError:
        return None
    return number if number > 0 else None
