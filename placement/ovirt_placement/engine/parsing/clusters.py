"""Clusters, with the affinity groups that `follow=affinity_groups` puts inside of them."""

from __future__ import annotations

from dataclasses import dataclass

from ovirt_placement.engine.parsing import affinity, xml
from ovirt_placement.engine.parsing.reservation import failures
from ovirt_placement.model import AffinityGroup, Cluster

_FIELDS = (
    "name",
    "ha_reservation",
    "data_center",
    "version",
    "threads_as_cores",
    "upgrade_in_progress",
    "upgrade_correlation_id",
    "memory_policy",
    "scheduling_policy",
    "custom_scheduling_policy_properties",
    "affinity_groups",
)


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
        groups.extend(affinity.groups(fields.get("affinity_groups"), xml.identity(element)))
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
