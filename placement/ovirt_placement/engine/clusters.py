"""Clusters and their hosts, and what is of clusters: data centers, networks, affinity groups and labels.

The engine has no field for how many failed hosts to survive, and which hosts are kept for that: an
administrator says both as properties of the scheduling policy of the cluster, where the engine checks their
form; the unit HaReservationWeight announces them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import asdict, replace

from ovirt_placement.engine import xml
from ovirt_placement.engine.vms import read_data, tags
from ovirt_placement.model import (
    AffinityGroup,
    AffinityLabel,
    AffinityRule,
    Cluster,
    DataCenter,
    Host,
    Network,
    Snapshot,
    VnicProfile,
)
from ovirt_placement.model.infrastructure import HOST_STATUSES, HostStatistics


def _groups_of(element: xml.Element | None, cluster_id: str) -> Iterator[AffinityGroup]:
    for entry in () if element is None else element.iterchildren("affinity_group"):
        rules = {name: xml.record(AffinityRule, entry.find(name)) for name in ("vms_rule", "hosts_rule")}
        priority = xml.decimal(entry.find("priority"), 1.0)
        yield xml.record(AffinityGroup, entry, cluster=cluster_id, priority=priority, **rules)


def labels(content: bytes) -> tuple[AffinityLabel, ...]:
    """Read `/affinitylabels?follow=vms,hosts`."""
    return tuple(
        xml.record(AffinityLabel, one, implicit=xml.flag(one.find("has_implicit_affinity_group")))
        for one in xml.elements(content, "affinity_label")
    )


@dataclass(frozen=True)
class PolicyUser:
    """A cluster with the policy it is assigned, by its id, and its own values of the policy's properties."""

    id: str
    name: str
    policy: str | None
    properties: dict[str, str]


class Clusters(NamedTuple):
    clusters: tuple[Cluster, ...]
    groups: tuple[AffinityGroup, ...]
    #: The clusters again, in their order.
    users: tuple[PolicyUser, ...]


def parse_clusters(content: bytes) -> Clusters:
    """Read `/clusters?follow=affinity_groups`; a cluster without groups may lack the list."""
    clusters: list[Cluster] = []
    groups: list[AffinityGroup] = []
    users: list[PolicyUser] = []
    for element in xml.elements(content, "cluster"):
        cluster = _cluster(element)
        clusters.append(cluster)
        groups.extend(_groups_of(element.find("affinity_groups"), cluster.id))
        policy = xml.reference(element.find("scheduling_policy")) or None
        users.append(PolicyUser(cluster.id, cluster.name, policy, cluster.scheduling_properties))
    return Clusters(tuple(clusters), tuple(groups), tuple(users))


def _cluster(element: xml.Element) -> Cluster:
    properties = xml.properties(element.find("custom_scheduling_policy_properties"))
    major = xml.number(element.find("version/major"), 4)
    return Cluster(
        id=xml.identity(element),
        name=xml.text(element.find("name")),
        ha_reservation=xml.flag(element.find("ha_reservation")),
        data_center=xml.reference(element.find("data_center")),
        compatibility=f"{major}.{xml.number(element.find('version/minor'))}",
        count_threads_as_cores=xml.flag(element.find("threads_as_cores")),
        upgrade_mode=xml.flag(element.find("upgrade_in_progress")),
        upgrade_correlation_id=xml.text(element.find("upgrade_correlation_id")) or None,
        memory_overcommit_percent=xml.number(element.find("memory_policy/over_commit/percent"), 100),
        ha_failures=failures(properties),
        scheduling_properties=properties,
    )


def option_values(content: bytes) -> dict[str, str]:
    """Read `/options/NAME` of `engine-config`: the option's value for each compatibility version."""
    return {
        xml.text(entry.find("version")): xml.text(entry.find("value"))
        for entry in xml.root(content).iterfind("values/system_option_value")
    }


def data_centers(content: bytes) -> tuple[DataCenter, ...]:
    """Read `/datacenters`."""
    found = xml.elements(content, "data_center")
    return tuple(xml.record(DataCenter, one, local_storage=xml.flag(one.find("local"))) for one in found)


def networks(content: bytes) -> tuple[Network, ...]:
    """Read `/networks`."""
    return tuple(xml.record(Network, one) for one in xml.elements(content, "network"))


def vnic_profiles(content: bytes) -> tuple[VnicProfile, ...]:
    """Read `/vnicprofiles`."""
    found = xml.elements(content, "vnic_profile")
    return tuple(
        xml.record(VnicProfile, one, network=xml.reference(one.find("network")) or "") for one in found
    )


FAILURES = "ha_failures"
#: Names of hosts, with commas between them.
FAILOVER_HOSTS = "ha_failover_hosts"


def failures(properties: Mapping[str, str]) -> int:
    """How many failed hosts a cluster with these properties is to survive; 1 unless they say more."""
    said = properties.get(FAILURES, "")
    return max(1, int(said)) if said.isascii() and said.isdigit() else 1


def with_failover_hosts(snapshot: Snapshot) -> Snapshot:
    """Mark the hosts that their clusters' scheduling properties name as dedicated failover hosts."""
    named = {
        cluster.id: frozenset(name.strip() for name in said.split(","))
        for cluster in snapshot.clusters
        if (said := cluster.scheduling_properties.get(FAILOVER_HOSTS))
    }
    if not named:
        return snapshot
    none: frozenset[str] = frozenset()

    def marked(host: Host) -> Host:
        failover = host.name in named.get(host.cluster, none)
        return host if host.failover == failover else replace(host, failover=failover)

    return replace(snapshot, hosts=tuple(marked(host) for host in snapshot.hosts))


_NO_SPM = "none"


def parse_hosts(content: bytes) -> tuple[Host, ...]:
    """Read `/hosts`; with `follow=statistics` also how busy they are, with `follow=tags` their tags."""
    return tuple(_host(element) for element in xml.elements(content, "host"))


def _host(element: xml.Element) -> Host:
    sockets, cores, threads = _processors(element.find("cpu/topology"))
    status, statistics = xml.text(element.find("status")), element.find("statistics")
    measured = HostStatistics() if statistics is None else _statistics(statistics)
    return Host(
        id=xml.identity(element),
        name=xml.text(element.find("name")),
        cluster=xml.reference(element.find("cluster")) or "",
        # The engine leaves out a status that its API has no word for.
        status=status if status in HOST_STATUSES else "unassigned",
        memory_mb=xml.mebibytes(element.find("memory")),
        free_mb=xml.mebibytes(element.find("max_scheduling_memory")),
        cores=cores,
        threads=threads,
        sockets=sockets,
        spm=xml.text(element.find("spm/status"), _NO_SPM) != _NO_SPM,
        tags=tags(element.find("tags")),
        **asdict(measured),
    )


def _processors(topology: xml.Element | None) -> tuple[int, int, int | None]:
    """Count sockets, cores and threads of the whole host; before its first contact there is no topology."""
    if topology is None:
        return 1, 0, None
    cores = topology.find("sockets"), topology.find("cores")
    sockets = max(1, xml.number(topology.find("sockets"), 1))
    return sockets, xml.product(*cores), xml.product(*cores, topology.find("threads"))


#: How many are free, by their size in KiB.
_HUGE_PAGES = re.compile(r"hugepages\.(\d{1,9})\.free")


def _statistics(element: xml.Element) -> HostStatistics:
    """Take user and system time as what is used, as the engine does.

    A host that has reported nothing shows 0 everywhere, which no running host does. The load average is what
    the host's own system counts, of all its CPUs together, although the engine calls its unit percent.
    """
    data = read_data(element)
    user, system = data.get("cpu.current.user", 0.0), data.get("cpu.current.system", 0.0)
    known = user or system or data.get("cpu.current.idle", 0.0)
    free = data.get("memory.free", 0.0)
    load, swap = data.get("cpu.load.avg.5m"), data.get("swap.free")
    huge_pages = ((_HUGE_PAGES.fullmatch(name), count) for name, count in data.items())
    return HostStatistics(
        cpu_percent=min(100.0, user + system) if known else None,
        memory_free_mb=int(free) // (1024 * 1024) if known or free else None,
        load_average_5m=load if known or load else None,
        swap_free_mb=int(swap) // (1024 * 1024) if swap is not None and known else None,
        free_huge_pages={int(size[1]): int(count) for size, count in huge_pages if size and count},
        measured=True,
    )
