"""Clusters, and what is of them: data centers, networks, affinity groups and labels, and what is kept for HA.

The engine has no field for how many failed hosts to survive, and which hosts are kept for that: an
administrator says both as properties of the scheduling policy of the cluster, where the engine checks their
form; the unit HaReservationWeight announces them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from ovirt_placement.engine.parsing import xml
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

_GROUP_FIELDS = ("name", "priority", "vms_rule", "hosts_rule", "vms", "hosts", "vm_labels", "host_labels")


def groups_of(element: xml.Element | None, cluster_id: str) -> Iterator[AffinityGroup]:
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


_FIELDS = (
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


def read(content: bytes) -> Clusters:
    """Read `/clusters?follow=affinity_groups`; a cluster without groups may lack the list."""
    clusters: list[Cluster] = []
    groups: list[AffinityGroup] = []
    policies = {}
    for element in xml.elements(content, "cluster"):
        fields = xml.children(element, *_FIELDS)
        clusters.append(_cluster(element, fields))
        groups.extend(groups_of(fields.get("affinity_groups"), xml.identity(element)))
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
