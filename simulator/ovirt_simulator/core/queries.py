"""What one can ask the engine, besides its records: what is computed from them, and what is measured.

Source: the engine's HostStatisticalQuery and VmStatisticalQuery.
"""

from __future__ import annotations

from datetime import datetime
from zlib import crc32

from ovirt_simulator.core import affinity
from ovirt_simulator.core.backend import Backend
from ovirt_simulator.core.entities import AffinityGroup, Event, Host, Job, Statistic, Vm
from ovirt_simulator.core.state import State, huge_pages, used_cores, used_mb

_MIB = 1024 * 1024


class Queries:
    """Reads: the records themselves, and what follows from them."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        #: The engine's records; who reads whole tables without the lock copies them first.
        self.state: State = backend.state

    @property
    def now(self) -> datetime:
        """The simulated time."""
        with self._backend.lock:
            return self._backend.now

    def is_broken(self, group: AffinityGroup) -> bool:
        """Give the `broken` flag, computed from where the members run now."""
        with self._backend.lock:
            return affinity.is_broken(self.state, group)

    def jobs(self) -> tuple[Job, ...]:
        with self._backend.lock:
            return tuple(self._backend.jobs.by_id.values())

    def events(self) -> tuple[Event, ...]:
        """Give what shows now: newest id first."""
        with self._backend.lock:
            return self._backend.audit_log.visible()

    def host_statistics(self, host_id: str) -> tuple[Statistic, ...]:
        """Measure a host; all figures are 0 while it is not up. Raises KeyError for an unknown id."""
        with self._backend.lock:
            return _host_statistics(self._backend, self.state.hosts[host_id])

    def vm_statistics(self, vm_id: str) -> tuple[Statistic, ...]:
        """Measure a VM; all figures are 0 while it is down. Raises KeyError for an unknown id."""
        with self._backend.lock:
            return _vm_statistics(self._backend, self.state.vms[vm_id])


def _host_statistics(backend: Backend, host: Host) -> tuple[Statistic, ...]:
    """Measure a host; the engine knows used memory by whole percents only."""
    up = host.status == "up"
    reported = up and not (host.measured and host.cpu_percent is None)
    total = host.memory_mb * _MIB if up else 0
    used = int(total * _used_percent(backend, host)) // 100 if up else 0
    busy = _busy_percent(backend, host) if up else 0.0
    swap = (host.swap_free_mb or 0) * _MIB if up else 0
    pages, taken = host.free_huge_pages, huge_pages(backend.state.vms_on(host.id))
    return (
        Statistic("memory.total", total, "bytes"),
        Statistic("memory.used", used, "bytes"),
        Statistic("memory.free", total - used, "bytes"),
        Statistic("swap.total", swap, "bytes"),
        Statistic("swap.free", swap, "bytes"),
        Statistic("swap.used", 0, "bytes"),
        Statistic("cpu.current.user", busy * 0.8),
        Statistic("cpu.current.system", busy * 0.2),
        Statistic("cpu.current.idle", 100.0 - busy * 0.8 - busy * 0.2 if reported else 0.0),
        Statistic("cpu.load.avg.5m", _load_average(host, busy) if up else 0.0),
        *(Statistic(f"hugepages.{size}.free", free, "none") for size, free in pages.items()),
        *(Statistic(f"hugepages.{size}.total", free + taken[size], "none") for size, free in pages.items()),
    )


def _vm_statistics(backend: Backend, vm: Vm) -> tuple[Statistic, ...]:
    """Measure a VM; a VM that is down has zeros."""
    installed = vm.memory_mb * _MIB
    memory_percent, cpu_percent = (vm.usage_mem_percent or 0.0, vm.usage_cpu_percent or 0.0)
    used = int(installed * int(_wobble(backend, vm.id, memory_percent if vm.runs else 0.0))) // 100
    cpu = _wobble(backend, vm.id, cpu_percent) if vm.runs else 0.0
    return (
        Statistic("memory.installed", installed, "bytes"),
        Statistic("memory.used", used, "bytes"),
        Statistic("memory.free", installed - used if vm.runs else 0, "bytes"),
        Statistic("cpu.current.guest", cpu * 0.9),
        Statistic("cpu.current.hypervisor", cpu * 0.1),
        Statistic("cpu.current.total", cpu),
    )


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
