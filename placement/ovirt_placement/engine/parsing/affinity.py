"""Affinity groups, which name their members by id, and affinity labels."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.engine.parsing import xml
from ovirt_placement.model import AffinityGroup, AffinityLabel, AffinityRule

_FIELDS = (
    "name",
    "priority",
    "vms_rule",
    "hosts_rule",
    "positive",
    "enforcing",
    "vms",
    "hosts",
    "vm_labels",
    "host_labels",
)


def groups(element: xml.Element | None, cluster_id: str) -> Iterator[AffinityGroup]:
    """Read the groups of one cluster."""
    for entry in () if element is None else element.iterchildren("affinity_group"):
        fields = xml.children(entry, *_FIELDS)
        yield AffinityGroup(
            id=xml.identity(entry),
            name=xml.text(fields.get("name")),
            cluster=cluster_id,
            priority=xml.decimal(fields.get("priority"), 1.0),
            vms_rule=_vms_rule(fields),
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


def _vms_rule(fields: xml.Children) -> AffinityRule:
    """Read the rule between VMs, or its form before 4.1: `positive` is absent where it is disabled."""
    if "vms_rule" in fields:
        return _rule(fields["vms_rule"])
    return AffinityRule(
        enabled="positive" in fields,
        positive=xml.flag(fields.get("positive")),
        enforcing=xml.flag(fields.get("enforcing")),
    )


def _rule(element: xml.Element | None) -> AffinityRule:
    fields = xml.children(element, "enabled", "positive", "enforcing")
    return AffinityRule(
        enabled=xml.flag(fields.get("enabled")),
        positive=xml.flag(fields.get("positive")),
        enforcing=xml.flag(fields.get("enforcing")),
    )
