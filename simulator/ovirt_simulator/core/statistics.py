"""What hosts and VMs measure: names, units and kinds as the engine has them, figures from what runs there.

Source: the engine's HostStatisticalQuery and VmStatisticalQuery.
"""

from __future__ import annotations

from zlib import crc32

from .backend import Backend
from .entities import Host, Statistic, Vm
from .state import used_cores, used_mb
from .vm_memory import huge_pages

_MIB = 1024 * 1024


def host_statistics(backend: Backend, host: Host) -> tuple[Statistic, ...]:
    """Measure a host; the engine knows used memory by whole percents only."""
    up = host.status == "up"
    reported = up and not (host.measured and host.cpu_percent is None)
    total = host.memory_mb * _MIB if up else 0
    used = int(total * _used_percent(backend, host)) // 100 if up else 0
    busy = _busy_percent(backend, host) if up else 0.0
    user, system = busy * 0.8, busy * 0.2
    swap = (host.swap_free_mb or 0) * _MIB if up else 0
    return (
        _bytes("memory.total", "Total memory", total),
        _bytes("memory.used", "Used memory", used),
        _bytes("memory.free", "Free memory", total - used),
        _bytes("memory.shared", "Shared memory", 0),
        _bytes("swap.total", "Total swap", swap),
        _bytes("swap.free", "Free swap", swap),
        _bytes("swap.used", "Used swap", 0),
        _percent("ksm.cpu.current", "KSM CPU usage", 0.0),
        _percent("cpu.current.user", "User CPU usage", user),
        _percent("cpu.current.system", "System CPU usage", system),
        _percent("cpu.current.idle", "Idle CPU usage", 100.0 - user - system if reported else 0.0),
        _percent("cpu.load.avg.5m", "CPU 5 minute load average", _load_average(host, busy) if up else 0.0),
        _count("boot.time", "Boot time of the machine", int(host.booted.timestamp()) if host.booted else 0),
        *_huge_pages(backend, host),
    )


def _huge_pages(backend: Backend, host: Host) -> list[Statistic]:
    taken = huge_pages(backend.state.vms_on(host.id))
    pages = host.free_huge_pages
    return [
        _count(f"hugepages.{size}.free", "Amount of free huge pages of the given size", free)
        for size, free in pages.items()
    ] + [
        _count(f"hugepages.{size}.total", "Amount of total huge pages of the given size", free + taken[size])
        for size, free in pages.items()
    ]


def vm_statistics(backend: Backend, vm: Vm) -> tuple[Statistic, ...]:
    """Measure a VM; a VM that is down has zeros."""
    installed = vm.memory_mb * _MIB
    used = int(installed * int(_wobble(backend, vm.id, _vm_memory_percent(vm)))) // 100
    cpu = _wobble(backend, vm.id, vm.usage_cpu_percent or 0.0) if vm.runs else 0.0
    seconds = int((backend.now - vm.started).total_seconds()) if vm.started and vm.runs else 0
    return (
        _bytes("memory.installed", "Total memory configured", installed),
        _bytes("memory.used", "Memory used (guest)", used),
        _bytes("memory.free", "Memory free (guest)", installed - used if vm.runs else 0),
        _bytes("memory.buffered", "Memory buffered (guest)", 0),
        _bytes("memory.cached", "Memory cached (guest)", 0),
        _bytes("memory.unused", "Memory unused (guest)", installed - used if vm.runs else 0),
        _percent("cpu.current.guest", "CPU used by guest", cpu * 0.9),
        _percent("cpu.current.hypervisor", "CPU overhead", cpu * 0.1),
        _percent("cpu.current.total", "Total CPU used", cpu),
        _percent("migration.progress", "Migration Progress", float(vm.migration_progress)),
        _percent("network.current.total", "Total network used", 0.0),
        _statistic("elapsed.time", "Elapsed VM runtime", "integer", "seconds", seconds, kind="counter"),
        _statistic("disks.usage", "Disk usage, in bytes, per filesystem as JSON (guest)", "string", "none"),
        *(
            _statistic(
                f"{name}.usage.history",
                f"List of {what} usage history, sorted by date from newest to oldest",
                "decimal",
                "percent",
            )
            for name, what in (("cpu", "CPU"), ("memory", "memory"), ("network", "network"))
        ),
    )


def _vm_memory_percent(vm: Vm) -> float:
    return (vm.usage_mem_percent or 0.0) if vm.runs else 0.0


def _busy_percent(backend: Backend, host: Host) -> float:
    """Give what the host's CPU is busy with: its calm figure, and how its VMs wobble around theirs."""
    if host.cpu_percent is None:
        return 0.0
    swing = sum(used_cores(vm) * (_wobble(backend, vm.id, 1.0) - 1.0) for vm in backend.state.vms_on(host.id))
    return min(max(host.cpu_percent + swing / host.cores * 100, 0.0), 100.0)


def _load_average(host: Host, busy: float) -> float:
    """Give the host's load average; where it has none, as many processes as keep its CPU that busy."""
    return busy / 100 * host.cores if host.load_average_5m is None else host.load_average_5m


def _used_percent(backend: Backend, host: Host) -> int:
    if host.memory_free_mb is None:
        used = sum(used_mb(vm) for vm in backend.state.vms_on(host.id))
    else:
        used = host.memory_mb - host.memory_free_mb
    return min(max(round(used / host.memory_mb * 100), 0), 100)


def _wobble(backend: Backend, vm_id: str, percent: float) -> float:
    """Let a figure differ a little from report to report; before the first report it is exact."""
    report = int(backend.timeline.elapsed // backend.settings.statistics_seconds)
    amplitude = backend.settings.statistics_wobble_percent / 100
    if report == 0 or amplitude == 0:
        return percent
    dice = crc32(f"{backend.seed}/{vm_id}/{report}".encode()) / 2**31 - 1
    return min(max(percent * (1 + amplitude * dice), 0.0), 100.0)


def _statistic(
    name: str, description: str, type_name: str, unit: str, *values: float, kind: str = "gauge"
) -> Statistic:
    return Statistic(name=name, description=description, kind=kind, type=type_name, unit=unit, values=values)


def _bytes(name: str, description: str, value: int) -> Statistic:
    return _statistic(name, description, "integer", "bytes", value)


def _count(name: str, description: str, value: int) -> Statistic:
    return _statistic(name, description, "integer", "none", value)


def _percent(name: str, description: str, value: float) -> Statistic:
    return _statistic(name, description, "decimal", "percent", value)
