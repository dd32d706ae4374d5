"""How busy hosts and VMs are: costly for the engine, so read only where an enabled rule asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ovirt_placement.model import Cluster, Host, Snapshot, Vm

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection

#: The policy units that ask how busy hosts are (the balance, and the keys #LOAD and #CPU), ...
_UNITS_ABOUT_HOSTS = {"HaReservationBalance", "PlacementKeyFilter", "PlacementKeyWeight"}
#: ... and how busy VMs are. The check of an HA reservation asks both.
_UNITS_ABOUT_VMS = {"HaReservationBalance"}


@dataclass(frozen=True)
class Needed:
    """Which statistics the enabled rules ask for."""

    hosts: bool
    vms: bool

    def __bool__(self) -> bool:
        return self.hosts or self.vms


NO_STATISTICS = Needed(hosts=False, vms=False)


class HostFigures(NamedTuple):
    """What is measured of a host."""

    cpu_percent: float | None = None
    memory_free_mb: int | None = None
    load_average_5m: float | None = None

    @classmethod
    def of(cls, host: Host) -> HostFigures:
        return cls(host.cpu_percent, host.memory_free_mb, host.load_average_5m)


_UNKNOWN = HostFigures()


@dataclass(frozen=True)
class Statistics:
    """What was measured, by id: of a VM its memory and CPU percent."""

    hosts: Mapping[str, HostFigures] = field(default_factory=dict)
    vms: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)

    def of_host(self, host: Host) -> Host:
        """Return the host with what was measured of it."""
        figures = self.hosts.get(host.id, _UNKNOWN)
        if figures == HostFigures.of(host):
            return host
        return replace(host, **figures._asdict())

    def of_vm(self, vm: Vm) -> Vm:
        """Return the VM with what was measured of it; one that runs nowhere uses nothing."""
        memory, cpu = self.vms.get(vm.id, (None, None)) if vm.host is not None else (None, None)
        if (memory, cpu) == (vm.usage_mem_percent, vm.usage_cpu_percent):
            return vm
        return replace(vm, usage_mem_percent=memory, usage_cpu_percent=cpu)


def needed(clusters: Iterable[Cluster]) -> Needed:
    """Say which statistics the rules need that these clusters have enabled."""
    hosts = vms = False
    for cluster in clusters:
        units: set[str | None] = set()
        if (policy := cluster.scheduling_policy) is not None:
            units = {*policy.filters, *policy.weights, policy.balance}
        hosts = hosts or cluster.ha_reservation or bool(units & _UNITS_ABOUT_HOSTS)
        vms = vms or cluster.ha_reservation or bool(units & _UNITS_ABOUT_VMS)
    return Needed(hosts, vms)


def read_statistics(connection: EngineConnection, wanted: Needed) -> Statistics:
    """Measure what is wanted; raises what `EngineConnection.get` raises."""
    # The SDK takes long to load and is not needed where somebody publishes.
    from ovirt_placement.engine.reading.statistics import measured_hosts, measured_vms

    hosts = measured_hosts(connection) if wanted.hosts else ()
    vms = measured_vms(connection) if wanted.vms else ()
    return Statistics(
        {host.id: HostFigures.of(host) for host in hosts},
        {vm.id: (vm.usage_mem_percent, vm.usage_cpu_percent) for vm in vms if vm.host is not None},
    )


def with_statistics(snapshot: Snapshot, measured: Statistics) -> Snapshot:
    """Return the snapshot with what was measured of its hosts and VMs."""
    return replace(
        snapshot,
        hosts=tuple(map(measured.of_host, snapshot.hosts)),
        vms=tuple(map(measured.of_vm, snapshot.vms)),
    )
