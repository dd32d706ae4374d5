"""The engine's filters by memory and CPU: which hosts they refuse, and the reason that its messages give.

Source: the engine's MemoryPolicyUnit, SlaValidator and CPUPolicyUnit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ovirt_placement.model import Host, Snapshot, Vm

from ..core import vm_memory
from .internal_filter import Refusals
from .peers import coming_to, cpus


def memory(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Refusals:
    """Refuse hosts without the memory of the VMs that do not run there; who is paused needs none."""
    refusals = {}
    for host in hosts:
        arriving = [vm for vm in vms if vm.status != "paused" and vm.host != host.id]
        available = _too_little(snapshot, host, arriving) if arriving else None
        if available is not None:
            refusals[host.id] = f"its available memory is too low ({available} MB) to run the VM"
    return refusals


def _too_little(snapshot: Snapshot, host: Host, vms: Sequence[Vm]) -> int | None:
    """Give the available memory in MiB that does not suffice, physical with swap or to hand out; else None.

    The engine refuses a host that does not report its free memory. A state file need not have it: then it is
    not looked at.
    """
    coming = coming_to(snapshot, host)
    to_allocate = vm_memory.pages_mb(_missing_pages(host, vms, coming))
    if host.memory_free_mb is not None:
        swap = host.swap_free_mb or 0
        needed = sum(vm_memory.own_without_huge_pages_mb(vm) + vm_memory.static_overhead_mb(vm) for vm in vms)
        left = host.memory_free_mb - sum(map(vm_memory.static_overhead_mb, coming)) - to_allocate
        if left < 0 or needed > left + swap:
            return host.memory_free_mb + swap
    total = sum(map(vm_memory.required_without_huge_pages_mb, vms)) + to_allocate
    return host.free_mb if total > host.free_mb else None


def _missing_pages(host: Host, vms: Sequence[Vm], coming: Sequence[Vm]) -> Mapping[int, int]:
    """Give the huge pages, by size, that the host has to make first.

    Of those that are free it deducts pending ones, whose count the engine looks up under the number of free
    pages where it means their size (freeHugePagesOnHost).
    """
    pending = vm_memory.huge_pages(coming)
    free = {size: max(0, count - pending[count]) for size, count in host.free_huge_pages.items()}
    needed = vm_memory.huge_pages(vms)
    return {size: max(0, count - free.get(size, 0)) for size, count in needed.items()}


def cpu(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Refusals:
    """Refuse hosts with fewer CPUs than a VM has cores, be it to come, on its way there or there already."""
    refusals = {}
    for host in hosts:
        there = snapshot.vms_of_host.get(host.id, ())
        if max(map(_cores, (*vms, *there, *coming_to(snapshot, host))), default=0) > cpus(host, snapshot):
            refusals[host.id] = "it does not have enough cores"
    return refusals


def _cores(vm: Vm) -> int:
    return vm.vcpus // max(1, vm.threads_per_core)
