"""How busy hosts and VMs are: costly for the engine, so read only where an enabled rule asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ovirt_placement.model import Cluster, Host, Snapshot, Vm
from ovirt_placement.model.statistics import HostStatistics, VmStatistics
from ovirt_placement.rules.admission.domains import listed_tags
from ovirt_placement.rules.catalogue import RULES
from ovirt_placement.rules.rule import Rule

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection


class Measured(IntEnum):
    """How much of what is measured a question needs; each holds the one before."""

    #: Whether rules are satisfied: nothing.
    NOTHING = 0
    #: What units of a cluster's policy say, ours and the engine's filters: what these read.
    FOR_UNITS = 1
    #: The check of HA reservation as well.
    FOR_RESERVATION = 2


@dataclass(frozen=True)
class Needed:
    """Which statistics the enabled rules ask for."""

    hosts: bool
    vms: bool
    #: Whether the tags of hosts are read with theirs: some name failure domains, or who a rule is about.
    tags: bool = False

    def __bool__(self) -> bool:
        return self.hosts or self.vms

    def lacks(self, read: Needed) -> bool:
        """Whether more is needed than was read."""
        return self.hosts > read.hosts or self.vms > read.vms or self.tags > read.tags


NO_STATISTICS = Needed(hosts=False, vms=False)

_UNKNOWN_HOST, _UNKNOWN_VM = HostStatistics(), VmStatistics()


@dataclass(frozen=True)
class Statistics:
    """What was measured, by id."""

    hosts: Mapping[str, HostStatistics] = field(default_factory=dict)
    vms: Mapping[str, VmStatistics] = field(default_factory=dict)
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: What was to be measured.
    read: Needed = NO_STATISTICS

    def of_host(self, host: Host) -> Host:
        """Return the host with what was measured of it, and its tags if they were read."""
        measured = self.hosts.get(host.id, _UNKNOWN_HOST).put_on(host)
        tags = self.tags.get(host.id, measured.tags)
        return measured if tags == measured.tags else replace(measured, tags=tags)

    def of_vm(self, vm: Vm) -> Vm:
        """Return the VM with what was measured of it; one that runs nowhere uses nothing."""
        measured = self.vms.get(vm.id, _UNKNOWN_VM) if vm.host is not None else _UNKNOWN_VM
        return measured.put_on(vm)


def needed(
    clusters: Iterable[Cluster],
    *,
    tagged: bool = False,
    host_tags: bool = False,
    measured: Measured = Measured.FOR_RESERVATION,
) -> Needed:
    """Say which statistics the enabled rules need; the check of HA reservation needs all.

    The tags of hosts are needed where those name failure domains, by the configuration (`tagged`) or by a
    policy's properties, and where placement rules go by them (`host_tags`).
    """
    hosts = tags = host_tags or (tagged and measured > Measured.NOTHING)
    vms = False
    for cluster in clusters if measured > Measured.NOTHING else ():
        enabled = [rule for rule in RULES if _is_known_in(rule, cluster)]
        reserves = cluster.ha_reservation and measured >= Measured.FOR_RESERVATION
        hosts = hosts or reserves or any(rule.reads_hosts for rule in enabled)
        vms = vms or reserves or any(rule.reads_vms for rule in enabled)
        tags = tags or bool(listed_tags(cluster.scheduling_properties))
    return Needed(hosts or tags, vms, tags)


def _is_known_in(rule: Rule, cluster: Cluster) -> bool:
    """Whether the policy has its unit; of the engine's own filters nothing is read on suspicion."""
    policy = cluster.scheduling_policy
    if rule.ours:
        return rule.enabled_in(cluster)
    return policy is not None and rule.name in policy.engine_filters


def read_statistics(connection: EngineConnection, wanted: Needed) -> Statistics:
    """Measure what is wanted; raises what `EngineConnection.get` raises."""
    # The SDK takes long to load and is not needed where somebody publishes.
    from ovirt_placement.engine.reading.statistics import measured_hosts, measured_vms

    hosts = measured_hosts(connection, tags=wanted.tags) if wanted.hosts else ()
    vms = measured_vms(connection) if wanted.vms else ()
    return Statistics(
        {host.id: HostStatistics.of(host) for host in hosts},
        {vm.id: VmStatistics.of(vm) for vm in vms if vm.host is not None},
        {host.id: host.tags for host in hosts} if wanted.tags else {},
        wanted,
    )


def with_statistics(snapshot: Snapshot, measured: Statistics) -> Snapshot:
    """Return the snapshot with what was measured of its hosts and VMs."""
    return replace(
        snapshot,
        hosts=tuple(map(measured.of_host, snapshot.hosts)),
        vms=tuple(map(measured.of_vm, snapshot.vms)),
    )
