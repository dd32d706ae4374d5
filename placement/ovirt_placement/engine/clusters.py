"""Clusters and their hosts, and what is of clusters: data centers, networks, affinity groups and labels.

The engine has no field for how many failed hosts to survive, and which hosts are kept for that: an
administrator says both as properties of the scheduling policy of the cluster, where the engine checks their
form; the unit HaReservationWeight announces them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

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

_GROUP_FIELDS = (
    "name",
    "priority",
    "vms_rule",
    "hosts_rule",
    "vms",
    "hosts",
    "vm_labels",
    "host_labels",
)


def _groups_of(element: xml.Element | None, cluster_id: str) -> Iterator[AffinityGroup]:
    """Read the groups of one cluster."""
    for entry in () if element is None else element.iterchildren("affinity_group"):
        fields = xml.children(entry, *_GROUP_FIELDS)
        yield AffinityGroup(
            id=xml.identity(entry),
            name=xml.text(fields.get("name")),
            cluster=cluster_id,
            priority=xml.decimal(fields.get("priority"), 1.0),
            vms_rule=_rule(fields.get("vms_rule")),
            hosts_rule=_rule(fields.get("hosts_rule")),
            vms=xml.references(fields.get("vms"), "vm"),
            hosts=xml.references(fields.get("hosts"), "host"),
            vm_labels=xml.references(fields.get("vm_labels"), "affinity_label"),
            host_labels=xml.references(fields.get("host_labels"), "affinity_label"),
        )


def labels(content: bytes) -> tuple[AffinityLabel, ...]:
    """Read `/affinitylabels?follow=vms,hosts`."""
    found = []
    for element in xml.elements(content, "affinity_label"):
        fields = xml.children(element, "name", "vms", "hosts", "has_implicit_affinity_group")
        found.append(
            AffinityLabel(
                id=xml.identity(element),
                name=xml.text(fields.get("name")),
                vms=xml.references(fields.get("vms"), "vm"),
                hosts=xml.references(fields.get("hosts"), "host"),
                implicit=xml.flag(fields.get("has_implicit_affinity_group")),
            )
        )
    return tuple(found)


def _rule(element: xml.Element | None) -> AffinityRule:
    fields = xml.children(element, "enabled", "positive", "enforcing")
    return AffinityRule(
        enabled=xml.flag(fields.get("enabled")),
        positive=xml.flag(fields.get("positive")),
        enforcing=xml.flag(fields.get("enforcing")),
    )


_CLUSTER_FIELDS = (
    "name", "ha_reservation", "data_center", "version", "threads_as_cores", "upgrade_in_progress",
    "upgrade_correlation_id", "memory_policy", "scheduling_policy", "custom_scheduling_policy_properties",
    "affinity_groups",
)  # fmt: skip


@dataclass(frozen=True)
class Clusters:
    clusters: tuple[Cluster, ...]
    groups: tuple[AffinityGroup, ...]
    #: The id of each cluster's scheduling policy, by the id of the cluster.
    policies: dict[str, str]


def parse_clusters(content: bytes) -> Clusters:
    """Read `/clusters?follow=affinity_groups`; a cluster without groups may lack the list."""
    clusters: list[Cluster] = []
    groups: list[AffinityGroup] = []
    policies = {}
    for element in xml.elements(content, "cluster"):
        fields = xml.children(element, *_CLUSTER_FIELDS)
        clusters.append(_cluster(element, fields))
        groups.extend(_groups_of(fields.get("affinity_groups"), xml.identity(element)))
        if policy := xml.reference(fields.get("scheduling_policy")):
            policies[xml.identity(element)] = policy
    return Clusters(tuple(clusters), tuple(groups), policies)


def _cluster(element: xml.Element, fields: xml.Children) -> Cluster:
    version = xml.children(fields.get("version"), "major", "minor")
    properties = xml.properties(fields.get("custom_scheduling_policy_properties"))
    return Cluster(
        id=xml.identity(element),
        name=xml.text(fields.get("name")),
        ha_reservation=xml.flag(fields.get("ha_reservation")),
        data_center=xml.reference(fields.get("data_center")),
        compatibility=f"{xml.number(version.get('major'), 4)}.{xml.number(version.get('minor'))}",
        count_threads_as_cores=xml.flag(fields.get("threads_as_cores")),
        upgrade_mode=xml.flag(fields.get("upgrade_in_progress")),
        upgrade_correlation_id=xml.text(fields.get("upgrade_correlation_id"), "") or None,
        memory_overcommit_percent=_overcommit(fields.get("memory_policy")),
        ha_failures=failures(properties),
        scheduling_properties=properties,
    )


def _overcommit(memory_policy: xml.Element | None) -> int:
    over_commit = xml.children(memory_policy, "over_commit").get("over_commit")
    return xml.number(xml.children(over_commit, "percent").get("percent"), 100)


def option_values(content: bytes) -> dict[str, str]:
    """Read `/options/NAME` of `engine-config`: the option's value for each compatibility version."""
    values = xml.children(xml.root(content), "values").get("values")
    found = {}
    for entry in () if values is None else values.iterchildren("system_option_value"):
        fields = xml.children(entry, "version", "value")
        found[xml.text(fields.get("version"))] = xml.text(fields.get("value"))
    return found


def data_centers(content: bytes) -> tuple[DataCenter, ...]:
    """Read `/datacenters`."""
    return tuple(
        DataCenter(
            id=xml.identity(element),
            name=xml.text((fields := xml.children(element, "name", "local")).get("name")),
            local_storage=xml.flag(fields.get("local")),
        )
        for element in xml.elements(content, "data_center")
    )


def networks(content: bytes) -> tuple[Network, ...]:
    """Read `/networks`."""
    return tuple(
        Network(id=xml.identity(element), name=xml.text(xml.children(element, "name").get("name")))
        for element in xml.elements(content, "network")
    )


def vnic_profiles(content: bytes) -> tuple[VnicProfile, ...]:
    """Read `/vnicprofiles`."""
    return tuple(
        VnicProfile(
            id=xml.identity(element),
            name=xml.text((fields := xml.children(element, "name", "network")).get("name")),
            network=xml.reference(fields.get("network")) or "",
        )
        for element in xml.elements(content, "vnic_profile")
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


_HOST_FIELDS = (
    "name", "cluster", "status", "memory", "max_scheduling_memory", "cpu", "tags", "statistics", "spm",
)  # fmt: skip

_NO_SPM = "none"


def parse_hosts(content: bytes) -> tuple[Host, ...]:
    """Read `/hosts`; with `follow=statistics` also how busy they are, with `follow=tags` their tags."""
    return tuple(_host(element) for element in xml.elements(content, "host"))


def _host(element: xml.Element) -> Host:
    fields = xml.children(element, *_HOST_FIELDS)
    sockets, cores, threads = _processors(fields.get("cpu"))
    status = xml.text(fields.get("status"))
    measured = _statistics(fields["statistics"]) if "statistics" in fields else HostStatistics()
    return Host(
        id=xml.identity(element),
        name=xml.text(fields.get("name")),
        cluster=xml.reference(fields.get("cluster")) or "",
        # The engine leaves out a status that its API has no word for.
        status=status if status in HOST_STATUSES else "unassigned",
        memory_mb=xml.mebibytes(fields.get("memory")),
        free_mb=xml.mebibytes(fields.get("max_scheduling_memory")),
        cpu_percent=measured.cpu_percent,
        cores=cores,
        threads=threads,
        sockets=sockets,
        memory_free_mb=measured.memory_free_mb,
        swap_free_mb=measured.swap_free_mb,
        free_huge_pages=measured.free_huge_pages,
        load_average_5m=measured.load_average_5m,
        spm=xml.text(xml.children(fields.get("spm"), "status").get("status"), _NO_SPM) != _NO_SPM,
        tags=tags(fields.get("tags")),
        measured=measured.measured,
    )


def _processors(cpu: xml.Element | None) -> tuple[int, int, int | None]:
    """Count sockets, cores and threads of the whole host; before its first contact there is no topology."""
    topology = xml.children(cpu, "topology").get("topology")
    if topology is None:
        return 1, 0, None
    fields = xml.children(topology, "sockets", "cores", "threads")
    cores = fields.get("sockets"), fields.get("cores")
    sockets = max(1, xml.number(fields.get("sockets"), 1))
    return sockets, xml.product(*cores), xml.product(*cores, fields.get("threads"))


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
    return HostStatistics(
        cpu_percent=min(100.0, user + system) if known else None,
        memory_free_mb=int(free) // (1024 * 1024) if known or free else None,
        load_average_5m=load if known or load else None,
        swap_free_mb=int(swap) // (1024 * 1024) if swap is not None and known else None,
        free_huge_pages=_free_huge_pages(data),
        measured=True,
    )


def _free_huge_pages(data: dict[str, float]) -> dict[int, int]:
    """How many are free, by their size in KiB: `hugepages.2048.free`."""
    shown = ((_HUGE_PAGES.fullmatch(name), count) for name, count in data.items())
    return {int(found[1]): int(count) for found, count in shown if found is not None and count}
