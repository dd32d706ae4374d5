"""The answers of `ovirt-placement groups` as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.group_states import BrokenRule, GroupState, RunningMember, in_words
from ovirt_placement.answers.lost_memberships import Loss
from ovirt_placement.model import AffinityGroup, AffinityLabel, Rule, Snapshot
from ovirt_placement.model.names import Named, named_cluster, named_hosts, named_vms
from ovirt_placement.model.record import Record


class Group(Record, frozen=True, omit_defaults=False, kw_only=True):
    """An affinity group."""

    id: str
    name: str
    cluster: Named
    priority: float
    vms_rule: Rule
    hosts_rule: Rule
    vms: tuple[Named, ...]
    hosts: tuple[Named, ...]
    vm_labels: tuple[Named, ...]
    host_labels: tuple[Named, ...]


class ListedGroup(Group, frozen=True, omit_defaults=False, kw_only=True):
    """An affinity group, and how it stands."""

    #: Its state in words.
    sentence: str
    broken: bool
    broken_rules: tuple[BrokenRule, ...]
    #: Members that run, those that a label brings included.
    running: tuple[RunningMember, ...]


class GroupsListDocument(Document, frozen=True, kw_only=True, tag="groups_list"):
    """Affinity groups, and how they stand."""

    groups: tuple[ListedGroup, ...]


class GroupChangeDocument(Document, frozen=True, kw_only=True, tag="group_change"):
    """An affinity group that was added, changed or removed."""

    group: Group
    warnings: tuple[str, ...]


class GroupsLostDocument(Document, frozen=True, kw_only=True, tag="groups_lost"):
    """What VMs were members of before they changed their cluster."""

    losses: tuple[Loss, ...]


def group_data(group: AffinityGroup, snapshot: Snapshot) -> Group:
    return Group(**_fields(group, snapshot))


def listed_group(group: AffinityGroup, state: GroupState, snapshot: Snapshot) -> ListedGroup:
    return ListedGroup(
        **_fields(group, snapshot),
        sentence=in_words(state).replace("\n", ", "),
        broken=state.broken,
        broken_rules=state.broken_rules,
        running=state.running,
    )


def _fields(group: AffinityGroup, snapshot: Snapshot) -> dict[str, Any]:
    return {
        "id": group.id,
        "name": group.name,
        "cluster": named_cluster(group.cluster, snapshot),
        "priority": group.priority,
        "vms_rule": group.vms_rule,
        "hosts_rule": group.hosts_rule,
        "vms": named_vms(group.vms, snapshot),
        "hosts": named_hosts(group.hosts, snapshot),
        "vm_labels": _named_labels(group.vm_labels, snapshot.label_by_id),
        "host_labels": _named_labels(group.host_labels, snapshot.label_by_id),
    }


def _named_labels(ids: Iterable[str], known: Mapping[str, AffinityLabel]) -> tuple[Named, ...]:
    return tuple(Named(one, known[one].name if one in known else one) for one in ids)
