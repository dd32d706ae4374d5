"""Affinity groups and labels as the engine shows them."""

from __future__ import annotations

from collections.abc import Iterable

from ovirt_placement.model import AffinityRule
from ovirt_simulator.core.entities import AffinityGroup, AffinityLabel
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import attribute, element, path, text

#: The member lists of a group, and what `follow` and the entity call them.
_GROUP_LINKS = {"vms": "vms", "hosts": "hosts", "vmlabels": "vm_labels", "hostlabels": "host_labels"}


def affinity_group(record: AffinityGroup, links: Links, *, broken: bool) -> str:
    """Render a group. Its members are inline as ids; a followed list of members stands in their place."""
    return links.entity(
        "affinity_group",
        record.id,
        text("name", record.name),
        text("description", record.description),
        links.links(_GROUP_LINKS),
        text("broken", broken),
        text("enforcing", record.vms_rule.enforcing),
        text("positive", record.vms_rule.positive if record.vms_rule.enabled else None),
        text("priority", _priority(record.priority)),
        _rule("hosts_rule", record.hosts_rule),
        _rule("vms_rule", record.vms_rule),
        links.reference("cluster", "clusters", record.cluster),
        _members(links, "vms", "vm", "vms", record.vms),
        _members(links, "hosts", "host", "hosts", record.hosts),
        _members(links, "vm_labels", "affinity_label", "affinitylabels", record.vm_labels),
        _members(links, "host_labels", "affinity_label", "affinitylabels", record.host_labels),
    )


def affinity_label(record: AffinityLabel, links: Links) -> str:
    return links.entity(
        "affinity_label",
        record.id,
        text("name", record.name),
        text("has_implicit_affinity_group", record.implicit),
        text("read_only", record.read_only),
        links.link("hosts", "hosts"),
        links.link("vms", "vms"),
    )


def member(tag: str, collection: str, entity_id: str) -> str:
    """Render a member as a group has it inline, and as a label's own lists show it: its id and address."""
    return f'<{tag} href="{path(collection, entity_id)}" id="{attribute(entity_id)}"/>'


def _rule(tag: str, rule: AffinityRule) -> str:
    return element(
        tag,
        text("enabled", rule.enabled),
        text("enforcing", rule.enforcing),
        text("positive", rule.enabled and rule.positive),
    )


def _priority(value: float) -> str:
    """Render the engine's double, which never lacks its point."""
    return repr(float(value))


def _members(links: Links, name: str, tag: str, collection: str, ids: Iterable[str]) -> str:
    """Render the ids of members, unless their list is followed and stands there already."""
    if links.follows(name):
        return ""
    return element(name, *(member(tag, collection, entity_id) for entity_id in ids))
