"""Affinity groups: add, edit, remove, and the member commands that check next to nothing.

Source: the engine's AddAffinityGroupCommand, EditAffinityGroupCommand and their like, and AffinityValidator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import replace

from ovirt_placement.model import AffinityRule

from . import rejections
from .affinity import Conflict, find_conflicts, flat, shown_priority
from .backend import Backend
from .entities import ADMIN, AffinityGroup, Caller, Host, Vm
from .events import EventCode, EventType
from .rejections import Rejected

DISABLED = AffinityRule(enabled=False, positive=False, enforcing=False)


class Members(StrEnum):
    """The member lists of an affinity group."""

    VMS = "vms"
    HOSTS = "hosts"
    VM_LABELS = "vm_labels"
    HOST_LABELS = "host_labels"


class AffinityGroupEdit(msgspec.Struct, frozen=True, kw_only=True):
    """What a request says of a group; None keeps what is there (for a new group: the default).

    The REST face resolves legacy `positive` and `enforcing`, and `enabled` without `positive`, into rules.
    """

    name: str | None = None
    description: str | None = None
    #: The engine rounds to 1e-7.
    priority: float | None = None
    cluster: str | None = None
    vms_rule: AffinityRule | None = None
    hosts_rule: AffinityRule | None = None
    vms: Sequence[str] | None = None
    hosts: Sequence[str] | None = None
    vm_labels: Sequence[str] | None = None
    host_labels: Sequence[str] | None = None


class AffinityCommands:
    """Commands on affinity groups; all raise `Rejected`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def add(self, cluster_id: str, edit: AffinityGroupEdit, *, caller: Caller = ADMIN) -> AffinityGroup:
        """Add a group; whole groups are checked for conflicts with all groups of the cluster."""
        with self._backend.lock:
            group = _edited(
                AffinityGroup(
                    id=self._backend.new_id(),
                    name="",
                    cluster=cluster_id,
                    priority=1.0,
                    vms_rule=DISABLED,
                    hosts_rule=DISABLED,
                    vms=(),
                    hosts=(),
                    vm_labels=(),
                    host_labels=(),
                ),
                edit,
            )
            try:
                self._check(group)
            except Rejected:
                self._log(EventCode.USER_FAILED_TO_ADD_AFFINITY_GROUP, group, caller)
                raise
            self._state.put(self._state.groups, group)
            self._log(EventCode.USER_ADDED_AFFINITY_GROUP, group, caller)
            return group

    def edit(self, group_id: str, edit: AffinityGroupEdit, *, caller: Caller = ADMIN) -> AffinityGroup:
        """Change a group; lists that the edit has replace the whole list."""
        with self._backend.lock:
            before = self._group(group_id)
            group = _edited(before, edit)
            try:
                if edit.cluster not in (None, before.cluster):
                    raise rejections.bad_parameters(
                        "Cannot update Affinity Group. Cannot change Cluster for Affinity Group."
                    )
                self._check(group)
            except Rejected:
                self._log(EventCode.USER_FAILED_TO_UPDATE_AFFINITY_GROUP, group, caller)
                raise
            self._update(group, caller)
            return group

    def remove(self, group_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a group, whatever its members."""
        with self._backend.lock:
            group = self._group(group_id)
            self._state.drop(self._state.groups, group_id)
            self._log(EventCode.USER_REMOVED_AFFINITY_GROUP, group, caller)

    def add_member(self, group_id: str, members: Members, member_id: str, *, caller: Caller = ADMIN) -> None:
        """Add one member, unchecked but for its existence, as the engine's sub-collections do."""
        with self._backend.lock:
            group = self._group(group_id)
            if member_id not in self._table(members):
                raise _no_such_member(members)
            present: tuple[str, ...] = getattr(group, members)
            if member_id in present:
                raise _duplicate_member(members)
            self._update(replace(group, **{members.value: (*present, member_id)}), caller)

    def remove_member(
        self, group_id: str, members: Members, member_id: str, *, caller: Caller = ADMIN
    ) -> None:
        """Take one member out; there is no further check."""
        with self._backend.lock:
            group = self._group(group_id)
            present: tuple[str, ...] = getattr(group, members)
            if member_id not in present:
                kind = _KINDS[members]
                raise rejections.bad_parameters(
                    f"Cannot update Affinity Group. Provided {kind} is invalid (does not exist)."
                )
            left = tuple(present_id for present_id in present if present_id != member_id)
            self._update(replace(group, **{members.value: left}), caller)

    def _update(self, group: AffinityGroup, caller: Caller) -> None:
        self._state.put(self._state.groups, group)
        self._log(EventCode.USER_UPDATED_AFFINITY_GROUP, group, caller)

    def _group(self, group_id: str) -> AffinityGroup:
        group = self._state.groups.get(group_id)
        if group is None:
            raise rejections.bad_parameters("Cannot update Affinity Group. No matching Affinity Group.")
        return group

    def _check(self, group: AffinityGroup) -> None:
        """Validate a whole group in the engine's order: name, cluster, VMs, hosts, labels, conflicts."""
        for other in self._state.groups.values():
            if other.id != group.id and other.name == group.name:
                raise rejections.bad_parameters(
                    "Affinity Group name already exists. Please choose a different name."
                )
        if group.cluster not in self._state.clusters:
            raise rejections.bad_parameters("Invalid Cluster for Affinity Group.")
        _check_members(Members.VMS, group.vms, self._state.vms, group.cluster)
        _check_members(Members.HOSTS, group.hosts, self._state.hosts, group.cluster)
        for members in (Members.VM_LABELS, Members.HOST_LABELS):
            labels: tuple[str, ...] = getattr(group, members)
            for label in labels:
                if label not in self._state.labels:
                    raise _no_such_member(members)
            if len(set(labels)) < len(labels):
                raise _duplicate_member(members)
        self._check_conflicts(group)

    def _check_conflicts(self, group: AffinityGroup) -> None:
        others = [g for g in self._state.groups_of(group.cluster) if g.id != group.id]
        found = find_conflicts([flat(self._state, each) for each in (*others, group)])
        for conflict in found:
            if not conflict.savable:
                raise _collision(conflict)
        cluster = self._state.clusters[group.cluster]
        for conflict in found:
            names = {
                "groups": conflict.groups,
                "hosts": self._host_names(conflict),
                "vms": self._vm_names(conflict),
            }
            words = {key: ",".join(sorted(value)) for key, value in names.items()}
            self._backend.audit_log.log(conflict.code, ADMIN, cluster=cluster, words=words)

    def _host_names(self, conflict: Conflict) -> set[str]:
        return {self._state.hosts[host_id].name for host_id in conflict.hosts}

    def _vm_names(self, conflict: Conflict) -> set[str]:
        return {self._state.vms[vm_id].name for vm_id in conflict.vms}

    def _table(self, members: Members) -> Mapping[str, Any]:
        if members is Members.VMS:
            return self._state.vms
        return self._state.hosts if members is Members.HOSTS else self._state.labels

    def _log(self, code: EventType, group: AffinityGroup, caller: Caller) -> None:
        cluster = self._state.clusters.get(group.cluster)
        self._backend.audit_log.log(code, caller, cluster=cluster, words={"group": group.name})


_KINDS = {
    Members.VMS: "VM",
    Members.HOSTS: "Host",
    Members.VM_LABELS: "VM label",
    Members.HOST_LABELS: "Host label",
}


def _edited(group: AffinityGroup, edit: AffinityGroupEdit) -> AffinityGroup:
    changes: dict[str, Any] = {}
    for name in ("name", "description", "vms_rule", "hosts_rule"):
        if getattr(edit, name) is not None:
            changes[name] = getattr(edit, name)
    for members in Members:
        if getattr(edit, members) is not None:
            changes[members.value] = tuple(getattr(edit, members))
    if edit.priority is not None:
        changes["priority"] = shown_priority(edit.priority)
    return replace(group, **changes)


def _check_members(
    members: Members, ids: Sequence[str], table: Mapping[str, Vm] | Mapping[str, Host], cluster_id: str
) -> None:
    for member_id in ids:
        if member_id not in table:
            raise _no_such_member(members)
        if table[member_id].cluster != cluster_id:
            kind = _KINDS[members]
            raise rejections.bad_parameters(f"{kind} is not in the same cluster as Affinity Group.")
    if len(set(ids)) < len(ids):
        raise _duplicate_member(members)


def _no_such_member(members: Members) -> Rejected:
    if members is Members.VMS:
        return rejections.bad_parameters("The selected VM does not exist.")
    if members is Members.HOSTS:
        return rejections.bad_parameters("The selected host does not exist.")
    return rejections.bad_parameters("The selected affinity label does not exist.")


def _duplicate_member(members: Members) -> Rejected:
    kind = _KINDS[members]
    return rejections.bad_parameters(f"Cannot update Affinity Group. Duplicate {kind}.")


def _collision(conflict: Conflict) -> Rejected:
    groups = ", ".join(sorted(conflict.groups))
    if conflict.code is EventCode.VM_TO_VM_AFFINITY_CONFLICTS:
        return rejections.conflict(
            f"Affinity Group collision detected: {groups} and others tie the same VMs and keep them apart."
        )
    return rejections.conflict(
        f"Affinity Group collision detected: {groups} bind the same VM to a host and keep it from there."
    )
