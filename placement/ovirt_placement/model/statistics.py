"""What is measured of hosts and VMs: it comes from elsewhere than what they are, and more seldom."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.model.infrastructure import Host
from ovirt_placement.model.vm import Vm


class HostStatistics(NamedTuple):
    """Fields of a host; None is what was not measured."""

    cpu_percent: float | None = None
    memory_free_mb: int | None = None
    load_average_5m: float | None = None
    swap_free_mb: int | None = None
    #: By their size in KiB; none where it was not measured.
    free_huge_pages: dict[int, int] = {}
    #: Whether it was tried.
    measured: bool = False

    @classmethod
    def of_host(cls, host: Host) -> HostStatistics:
        return cls(*(getattr(host, field) for field in cls._fields))

    def put_on(self, host: Host) -> Host:
        """Return the host with these; the same object if it has them."""
        return host if HostStatistics.of_host(host) == self else replace(host, **self._asdict())


def set_up(host: Host) -> Host:
    """A host as it is set up, without what changes while it works: what is measured, and who is SPM."""
    return replace(host, free_mb=0, spm=False, **HostStatistics()._asdict())


class VmStatistics(NamedTuple):
    """Fields of a VM; None is what was not measured."""

    usage_mem_percent: float | None = None
    usage_cpu_percent: float | None = None

    @classmethod
    def of_vm(cls, vm: Vm) -> VmStatistics:
        return cls(vm.usage_mem_percent, vm.usage_cpu_percent)

    def put_on(self, vm: Vm) -> Vm:
        """Return the VM with these; the same object if it has them."""
        return vm if VmStatistics.of_vm(vm) == self else replace(vm, **self._asdict())
