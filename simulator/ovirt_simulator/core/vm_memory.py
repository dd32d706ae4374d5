"""What a VM takes of a host's memory: its own, and what the engine reckons with besides.

Source: the engine's VmOverheadCalculatorImpl and HugePageUtils.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ovirt_placement.model import Vm

_KIB_IN_MIB = 1024


def required_mb(vm: Vm) -> int:
    """Give all that the VM takes of what a host may hand out, in MiB, huge pages or not."""
    return vm.memory_mb + overhead_mb(vm)


def required_without_huge_pages_mb(vm: Vm) -> int:
    """Give what the VM takes of a host's usual pages, in MiB."""
    return own_without_huge_pages_mb(vm) + overhead_mb(vm)


def own_without_huge_pages_mb(vm: Vm) -> int:
    """Give the VM's own memory, in MiB, or nothing where huge pages hold it."""
    return 0 if _page_kib(vm) else vm.memory_mb


def overhead_mb(vm: Vm) -> int:
    """Give what the VM may come to take besides its own memory, in MiB."""
    return static_overhead_mb(vm) + 8 * vm.vcpus + 8 * vm.io_threads + vm.video_mb


def static_overhead_mb(vm: Vm) -> int:
    """Give what the VM takes besides its own memory as soon as it starts, in MiB: page tables and QEMU."""
    if not vm.architecture.startswith("ppc"):
        return 64 + vm.memory_mb // 512
    page_table_for = 1
    while page_table_for < (vm.max_memory_mb or vm.memory_mb):
        page_table_for *= 2
    return 100 + page_table_for // 64


def huge_pages(vms: Iterable[Vm]) -> Counter[int]:
    """Count the huge pages that the VMs need together, by their size in KiB."""
    needed: Counter[int] = Counter()
    for vm in vms:
        size = _page_kib(vm)
        if size:
            needed[size] += -(-vm.memory_mb * _KIB_IN_MIB // size)
    return needed


def pages_mb(pages: Mapping[int, int]) -> int:
    """Give the memory of huge pages, in MiB, rounded up."""
    return -(-sum(size * count for size, count in pages.items()) // _KIB_IN_MIB)


def _page_kib(vm: Vm) -> int:
    """Give the size of the VM's huge pages; 0 for none, as for what is no number."""
    try:
        return max(0, int(vm.custom_properties.get("hugepages", "")))
    except ValueError:
        return 0
