"""What is read only where an enabled rule or a key asks for it, since it costs the engine more."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ovirt_placement.engine.vms import NO_DETAILS, Detail, VmDetails
from ovirt_placement.inventory.publication import Measured
from ovirt_placement.model import Cluster, Host, Network, PlacementRule, Snapshot, Vm, VnicProfile
from ovirt_placement.model.infrastructure import HostStatistics, VmStatistics
from ovirt_placement.model.record import MemberSearch, SearchOf
from ovirt_placement.model.snapshot import HOST_STATISTICS, HOST_TAGS, VM_STATISTICS, Part
from ovirt_placement.rules.catalogue import RULES
from ovirt_placement.rules.failover.outcomes import listed_tags

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection

_NEVER = float("-inf")


class Span(NamedTuple):
    """What was read was so at some moment from `began` to `ended`; seconds of one clock."""

    began: float
    ended: float


NEVER = Span(_NEVER, _NEVER)

#: What stands for tags of VMs among these levels.
VM_TAGS = "tags"
#: What keys on each level of the hierarchy refer to; a VM as it is read anyway has all the others.
_REFERRED = {
    "customer_offer": Detail.OWNER,
    "customer": Detail.OWNER,
    "disk_offer": Detail.DISKS,
    "disk": Detail.DISKS,
    "network_offer": Detail.NICS,
    "network": Detail.NICS,
    "nic_offer": Detail.NICS,
    "nic": Detail.NICS,
    VM_TAGS: Detail.OWNER,
}


def referred(levels: Iterable[str]) -> Detail:
    """Say what placement keys on these levels refer to."""
    return reduce(or_, (_REFERRED.get(level, NO_DETAILS) for level in levels), NO_DETAILS)


#: What the network interfaces of VMs refer to.
Networks = tuple[tuple[Network, ...], tuple[VnicProfile, ...]]


@dataclass(frozen=True)
class Details:
    """What one reading found of all VMs, by id."""

    #: What was read.
    read: Detail
    vms: Mapping[str, VmDetails] = field(default_factory=dict)
    networks: Networks = ((), ())


def read_details(connection: EngineConnection, wanted: Detail) -> Details:
    """Read what is wanted of all VMs; raises what `EngineConnection.get` raises."""
    # The SDK takes long to load and is not needed where a service publishes.
    from ovirt_placement.engine.topology import detailed_vms, read_networks

    vms = {vm.id: VmDetails.of(vm) for vm in detailed_vms(connection, wanted)}
    return Details(wanted, vms, read_networks(connection) if Detail.NICS in wanted else ((), ()))


#: What is searched, and by which text.
Wanted = frozenset[tuple[SearchOf, str]]
NO_SEARCHES: Wanted = frozenset()


def searches_of(rules: Iterable[PlacementRule]) -> Wanted:
    """The searches that rules name."""
    return frozenset(search for rule in rules for search in rule.searches)


#: Of a snapshot the parts that are measured, with the tags of hosts, which are read along.
Needed = frozenset[Part]
NO_STATISTICS: Needed = frozenset()


class Demands(NamedTuple):
    """What placement keys and rules, ours and the engine's, need of the engine besides the topology."""

    #: What keys refer to, and tags of VMs where a rule names some.
    details: Detail = NO_DETAILS
    #: What rules have the engine search.
    searches: Wanted = NO_SEARCHES
    #: The tags of hosts where rules go by them, and what enabled rules ask for.
    statistics: Needed = NO_STATISTICS
    #: What of these anybody asks for, where no service runs.
    measured: Measured = Measured.FOR_RESERVATION

    def lack(self, read: Demands) -> bool:
        """Whether more is needed than was read."""
        more = self.details & ~read.details or self.searches - read.searches
        return bool(more or self.statistics - read.statistics) or self.measured > read.measured


NO_DEMANDS = Demands()


def read_searches(connection: EngineConnection, wanted: Wanted) -> tuple[MemberSearch, ...]:
    """Have the engine answer them; raises what `EngineConnection.get` raises, but for its refusals."""
    # The SDK takes long to load and is not needed where a service publishes.
    from ovirt_placement.engine.requests import search_members

    return tuple(search_members(connection, of, text) for of, text in sorted(wanted))


class KnownSearches:
    """The last answer to each search; whom it has found counts on while the engine refuses it."""

    def __init__(self) -> None:
        self.wanted = NO_SEARCHES
        #: The same object as long as nothing changes.
        self.found: tuple[MemberSearch, ...] = ()
        #: When each was last answered, in seconds since the epoch.
        self._answered: dict[tuple[SearchOf, str], float] = {}

    def want(self, wanted: Wanted) -> None:
        """Forget what is not wanted any more."""
        if wanted != self.wanted:
            self.wanted = wanted
            self._keep_answers(self.found)

    def put(self, answers: Iterable[MemberSearch]) -> None:
        """Take the answers of one reading."""
        known = {(one.of, one.text): one for one in self.found}
        for one in answers:
            search = one.of, one.text
            before = known.get(search)
            known[search] = one
            if one.found is not None:
                self._answered[search] = time.time()
            elif before is not None and before.found is not None:
                since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self._answered[search]))
                problem = f"{one.problem}; whom it found at {since} counts"
                known[search] = replace(one, found=before.found, problem=problem)
        self._keep_answers(known.values())

    def _keep_answers(self, answers: Iterable[MemberSearch]) -> None:
        kept = tuple(one for one in answers if (one.of, one.text) in self.wanted)
        if kept != self.found:
            self.found = kept


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
        measured = self.hosts.get(host.id, HostStatistics()).put_on(host)
        tags = self.tags.get(host.id, measured.tags)
        return measured if tags == measured.tags else replace(measured, tags=tags)

    def of_vm(self, vm: Vm) -> Vm:
        """Return the VM with what was measured of it; one that runs nowhere uses nothing."""
        known = None if vm.host is None else self.vms.get(vm.id)
        return (known or VmStatistics()).put_on(vm)


def needed(
    clusters: Iterable[Cluster],
    demanded: Needed = NO_STATISTICS,
    *,
    tagged: bool = False,
    measured: Measured = Measured.FOR_RESERVATION,
) -> Needed:
    """Say which statistics the enabled rules need; the check of HA reservation needs all.

    The tags of hosts are needed where those name failure domains, by the configuration (`tagged`) or by a
    policy's properties, and where they are `demanded`.
    """
    parts = set(demanded)
    if tagged and measured > Measured.NOTHING:
        parts.add(HOST_TAGS)
    for cluster in clusters if measured > Measured.NOTHING else ():
        policy = cluster.scheduling_policy
        # Of the engine's own filters nothing is read on suspicion: a policy must have them.
        engines = () if policy is None else policy.engine_filters
        enabled = [one for one in RULES if (one.enabled_in(cluster) if one.ours else one.name in engines)]
        parts.update(*({HOST_STATISTICS, VM_STATISTICS} & rule.reads for rule in enabled))
        if cluster.ha_reservation and measured >= Measured.FOR_RESERVATION:
            parts |= {HOST_STATISTICS, VM_STATISTICS}
        if listed_tags(cluster.scheduling_properties):
            parts.add(HOST_TAGS)
    return frozenset(parts | {HOST_STATISTICS} if HOST_TAGS in parts else parts)


def read_statistics(connection: EngineConnection, wanted: Needed) -> Statistics:
    """Measure what is wanted; raises what `EngineConnection.get` raises."""
    # The SDK takes long to load and is not needed where a service publishes.
    from ovirt_placement.engine.topology import measured_vms, read_hosts

    tags = HOST_TAGS in wanted
    hosts = read_hosts(connection, statistics=True, devices=tags) if HOST_STATISTICS in wanted else ()
    vms = measured_vms(connection) if VM_STATISTICS in wanted else ()
    return Statistics(
        {host.id: HostStatistics.of(host) for host in hosts},
        {vm.id: VmStatistics.of(vm) for vm in vms if vm.host is not None},
        {host.id: host.tags for host in hosts} if tags else {},
        wanted,
    )


def with_statistics(snapshot: Snapshot, measured: Statistics) -> Snapshot:
    """Return the snapshot with what was measured of its hosts and VMs."""
    return replace(
        snapshot,
        hosts=tuple(map(measured.of_host, snapshot.hosts)),
        vms=tuple(map(measured.of_vm, snapshot.vms)),
    )
