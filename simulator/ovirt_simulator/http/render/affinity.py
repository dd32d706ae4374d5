"""Affinity groups and labels as the engine shows them."""

from __future__ import annotations

from collections.abc import Iterable

from ovirt_placement.model import Rule
from ovirt_simulator.core.entities import AffinityGroup, AffinityLabel
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import attribute, element, path, text

#: The member lists of a group: what the entity calls them, by rel.
GROUP_LINKS = {"vms": "vms", "hosts": "hosts", "vmlabels": "vm_labels", "hostlabels": "host_labels"}


def affinity_group(record: AffinityGroup, links: Links, *, broken: bool) -> str:
    """Render a group. Its members are inline as ids; a followed list of members stands in their place."""
    rendered = {rel: links.link(rel, name) for rel, name in GROUP_LINKS.items()}
    followed = {rel for rel, markup in rendered.items() if not markup.startswith("<link ")}
    return links.entity(
        "affinity_group",
        record.id,
        text("name", record.name),
        text("description", record.description),
        *rendered.values(),
        text("broken", broken),
        text("enforcing", record.vms_rule.enforcing),
        text("positive", record.vms_rule.positive if record.vms_rule.enabled else None),
        text("priority", _priority(record.priority)),
        _rule("hosts_rule", record.hosts_rule),
        _rule("vms_rule", record.vms_rule),
        links.reference("cluster", "clusters", record.cluster),
        "" if "vms" in followed else _members("vms", "vm", "vms", record.vms),
        "" if "hosts" in followed else _members("hosts", "host", "hosts", record.hosts),
        "" if "vmlabels" in followed else _labels("vm_labels", record.vm_labels),
        "" if "hostlabels" in followed else _labels("host_labels", record.host_labels),
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


def _rule(tag: str, rule: Rule) -> str:
    return element(
        tag,
        text("enabled", rule.enabled),
        text("enforcing", rule.enforcing),
        text("positive", rule.enabled and rule.positive),
    )


def _priority(value: float) -> str:
    """Render the engine's double, which never lacks its point."""
    return repr(float(value))


def _members(tag: str, item: str, collection: str, ids: Iterable[str]) -> str:
    return element(tag, *(member(item, collection, entity_id) for entity_id in ids))


def _labels(tag: str, ids: Iterable[str]) -> str:
    return _members(tag, "affinity_label", "affinitylabels", ids)
