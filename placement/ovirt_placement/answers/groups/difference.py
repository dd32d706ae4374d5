"""What differs between a group and what is to become of it, each in words, for the record of who did it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ovirt_placement.model import AffinityGroup, AffinityRule, Snapshot
from ovirt_placement.model.names import host_name, vm_name


def differences(before: AffinityGroup, after: AffinityGroup, snapshot: Snapshot) -> Iterator[str]:
    """The fields that change, and the members that come and go."""
    if before.name != after.name:
        yield f"name {after.name}"
    if before.priority != after.priority:
        yield f"priority {after.priority:g}"
    for word, was, rule in (
        ("VM", before.vms_rule, after.vms_rule),
        ("host", before.hosts_rule, after.hosts_rule),
    ):
        if was != rule:
            yield f"{word} rule {_rule(rule)}"
    for word, old, new, name in (
        ("VM", before.vms, after.vms, lambda one: vm_name(one, snapshot)),
        ("host", before.hosts, after.hosts, lambda one: host_name(one, snapshot)),
        ("VM label", before.vm_labels, after.vm_labels, lambda one: _label(one, snapshot)),
        ("host label", before.host_labels, after.host_labels, lambda one: _label(one, snapshot)),
    ):
        yield from _members(word, old, new, name)


def _members(
    word: str, old: tuple[str, ...], new: tuple[str, ...], name: Callable[[str], str]
) -> Iterator[str]:
    yield from (f"{word} {name(member)} added" for member in new if member not in old)
    yield from (f"{word} {name(member)} removed" for member in old if member not in new)


def _rule(rule: AffinityRule) -> str:
    if not rule.enabled:
        return "disabled"
    return f"{'positive' if rule.positive else 'negative'}, {'hard' if rule.enforcing else 'soft'}"


def _label(label: str, snapshot: Snapshot) -> str:
    known = snapshot.label_by_id.get(label)
    return label if known is None else known.name
