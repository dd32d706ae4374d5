"""An affinity group as it is configured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ovirt_placement.model import AffinityGroup, AffinityLabel, AffinityRule, Host, Snapshot, Vm
from ovirt_placement.model.names import Named, named_cluster
from ovirt_placement.model.record import Record


class Member(Named, frozen=True):
    """A VM or a host of a group."""

    #: Its cluster, if it is another one than the group's.
    cluster: Named | None = None


class MemberLabel(Named, frozen=True, kw_only=True):
    """An affinity label, and the members that it brings."""

    members: tuple[Member, ...]


class Group(Record, frozen=True, omit_defaults=False, kw_only=True):
    """An affinity group."""

    id: str
    name: str
    cluster: Named
    priority: float
    vms_rule: AffinityRule
    hosts_rule: AffinityRule
    vms: tuple[Member, ...]
    hosts: tuple[Member, ...]
    vm_labels: tuple[MemberLabel, ...]
    host_labels: tuple[MemberLabel, ...]

    @property
    def enabled(self) -> bool:
        """Whether it asks for anything."""
        return self.vms_rule.enabled or self.hosts_rule.enabled


class DescribedGroup(Group, frozen=True, kw_only=True):
    """An affinity group, with its description."""

    description: str


def described_group(group: AffinityGroup, snapshot: Snapshot, description: str) -> DescribedGroup:
    """A group, with names and its description, which snapshots lack."""
    return DescribedGroup(description=description, **group_fields(group, snapshot))


def group_fields(group: AffinityGroup, snapshot: Snapshot) -> dict[str, Any]:
    """What `Group` has, for records that have more."""
    return {
        "id": group.id,
        "name": group.name,
        "cluster": named_cluster(group.cluster, snapshot),
        "priority": group.priority,
        "vms_rule": group.vms_rule,
        "hosts_rule": group.hosts_rule,
        "vms": _members(group.vms, snapshot.vm_by_id, group, snapshot),
        "hosts": _members(group.hosts, snapshot.host_by_id, group, snapshot),
        "vm_labels": tuple(
            MemberLabel(label.id, label.name, members=_members(label.vms, snapshot.vm_by_id, group, snapshot))
            for label in _labels(group.vm_labels, snapshot)
        ),
        "host_labels": tuple(
            MemberLabel(
                label.id, label.name, members=_members(label.hosts, snapshot.host_by_id, group, snapshot)
            )
            for label in _labels(group.host_labels, snapshot)
        ),
    }


def _labels(ids: Iterable[str], snapshot: Snapshot) -> Iterator[AffinityLabel]:
    """One that is not known has its id for a name, and no members."""
    for one in ids:
        yield snapshot.label_by_id.get(one) or AffinityLabel(id=one, name=one, vms=(), hosts=())


def _members(
    ids: Iterable[str], known: Mapping[str, Vm] | Mapping[str, Host], group: AffinityGroup, snapshot: Snapshot
) -> tuple[Member, ...]:
    return tuple(_member(one, known.get(one), group, snapshot) for one in ids)


def _member(member: str, known: Vm | Host | None, group: AffinityGroup, snapshot: Snapshot) -> Member:
    """Labels and unchecked commands let members of other clusters in."""
    if known is None:
        return Member(member, member)
    own = known.cluster == group.cluster
    return Member(member, known.name, None if own else named_cluster(known.cluster, snapshot))
