"""Affinity groups and labels: add, edit, remove, and the member commands that check next to nothing.

Source: the engine's AddAffinityGroupCommand, EditAffinityGroupCommand and their like, AffinityValidator,
AddLabelCommand, UpdateLabelCommand and RemoveLabelCommand.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec.structs import replace

from ovirt_placement.model import AffinityRule
from ovirt_simulator.core import messages
from ovirt_simulator.core.affinity import Conflict, find_conflicts, flat, shown_priority
from ovirt_simulator.core.backend import Commands, locked
from ovirt_simulator.core.entities import ADMIN, AffinityGroup, AffinityLabel, Caller, Host, Vm
from ovirt_simulator.core.messages import EventCode, EventType, Rejected, existing

DISABLED = AffinityRule(enabled=False, positive=False, enforcing=False)


Record = TypeVar("Record", AffinityGroup, AffinityLabel)
#: Of each list of a group: the table of its members, what one is called, and what one of a cluster is called.
_KNOWN = {
    "vms": ("vms", "VM", "VM"),
    "hosts": ("hosts", "VDS", "host"),
    "vm_labels": ("labels", "VM label", ""),
    "host_labels": ("labels", "Host label", ""),
}
#: The engine's longest name and description of a group.
_LONGEST_NAME, _LONGEST_DESCRIPTION = 255, 4000


def _cannot(verb: str, reason: str) -> Rejected:
    return messages.bad_parameters(f"Cannot {verb} Affinity Group. {reason}")


class AffinityCommands(Commands):
    """Commands on affinity groups; all raise `Rejected`. What is said of a group are fields of its record.

    The REST face resolves legacy `positive` and `enforcing`, and `enabled` without `positive`, into rules.
    """

    @locked
    def add(self, cluster_id: str, *, caller: Caller = ADMIN, **fields: Any) -> AffinityGroup:
        """Add a group; whole groups are checked for conflicts with all groups of the cluster."""
        empty = AffinityGroup(
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
        )
        group, failed = _edited(empty, fields), EventCode.USER_FAILED_TO_ADD_AFFINITY_GROUP
        with self._reporting(failed, group, caller):
            self._check(group, "add")
        return self._put_group(group, EventCode.USER_ADDED_AFFINITY_GROUP, caller)

    @locked
    def edit(self, group_id: str, *, caller: Caller = ADMIN, **changes: Any) -> AffinityGroup:
        """Change a group; lists replace the whole list."""
        before = self._group(group_id)
        group, failed = _edited(before, changes), EventCode.USER_FAILED_TO_UPDATE_AFFINITY_GROUP
        with self._reporting(failed, group, caller):
            if changes.get("cluster", before.cluster) != before.cluster:
                raise _cannot("edit", "Cannot change Cluster for Affinity Group.")
            self._check(group, "edit")
        return self._put_group(group, EventCode.USER_UPDATED_AFFINITY_GROUP, caller)

    @locked
    def remove(self, group_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a group, whatever its members."""
        group = self._group(group_id)
        self._state.drop(self._state.groups, group_id)
        self._report(EventCode.USER_REMOVED_AFFINITY_GROUP, group, caller)

    @locked
    def add_member(self, group_id: str, members: str, member_id: str, *, caller: Caller = ADMIN) -> Vm | None:
        """Add one member, unchecked but for its existence, as the engine's sub-collections do.

        Of members VMs alone are answered with.
        """
        group = self._group(group_id)
        table, kind, selected = _KNOWN[members]
        if member_id not in getattr(self._state, table):
            raise messages.bad_parameters(f"The selected {selected or 'affinity label'} does not exist.")
        present: tuple[str, ...] = getattr(group, members)
        if member_id in present:
            raise _cannot("edit", f"Duplicate {kind}.")
        self._put_members(group, members, (*present, member_id), caller)
        return self._state.vms[member_id] if members == "vms" else None

    @locked
    def remove_member(self, group_id: str, members: str, member_id: str, *, caller: Caller = ADMIN) -> None:
        """Take one member out; there is no further check."""
        group = self._group(group_id)
        present: tuple[str, ...] = getattr(group, members)
        if member_id not in present:
            raise _cannot("edit", f"Provided {_KNOWN[members][1]} is invalid (does not exist).")
        self._put_members(group, members, tuple(one for one in present if one != member_id), caller)

    def _put_members(self, group: AffinityGroup, members: str, ids: tuple[str, ...], caller: Caller) -> None:
        group = replace(group, **{members: ids})
        self._put_group(group, EventCode.USER_UPDATED_AFFINITY_GROUP, caller)

    def _put_group(self, group: AffinityGroup, code: EventType, caller: Caller) -> AffinityGroup:
        self._state.put(self._state.groups, group)
        self._report(code, group, caller)
        return group

    @contextmanager
    def _reporting(self, failed: EventType, group: AffinityGroup, caller: Caller) -> Iterator[None]:
        try:
            yield
        except Rejected:
            self._report(failed, group, caller)
            raise

    def _report(self, code: EventType, group: AffinityGroup, caller: Caller) -> None:
        self._log(code, caller, cluster=self._state.clusters.get(group.cluster), group=group.name)

    def _group(self, group_id: str) -> AffinityGroup:
        if group_id not in self._state.groups:
            raise _cannot("edit", "No matching Affinity Group.")
        return self._state.groups[group_id]

    def _check(self, group: AffinityGroup, verb: str) -> None:
        """Validate a whole group in the engine's order: texts, name, cluster, members, conflicts."""
        if " " in group.name:
            raise _cannot(verb, "Name field is invalid., Attribute: affinityGroup.name")
        if len(group.name) > _LONGEST_NAME:
            raise _cannot(verb, "Name field input is too long., Attribute: affinityGroup.name")
        if len(group.description) > _LONGEST_DESCRIPTION:
            raise _cannot(verb, "Description field is invalid., Attribute: affinityGroup.description")
        if group.name in {other.name for other in self._state.groups.values() if other.id != group.id}:
            raise _cannot(verb, "Affinity Group name already exists.")
        if group.cluster not in self._state.clusters:
            raise messages.bad_parameters("Invalid Cluster for Affinity Group.")
        for members in _KNOWN:
            self._check_members(group, members, verb)
        self._check_conflicts(group)

    def _check_members(self, group: AffinityGroup, members: str, verb: str) -> None:
        name, kind, selected = _KNOWN[members]
        ids, table = getattr(group, members), getattr(self._state, name)
        for member_id in ids:
            if member_id not in table:
                raise _cannot(verb, f"Provided {kind} is invalid (does not exist).")
            if selected and table[member_id].cluster != group.cluster:
                raise messages.bad_parameters(f"The {selected} is not in the same cluster as Affinity Group.")
        if len(set(ids)) < len(ids):
            raise _cannot(verb, f"Duplicate {kind}.")

    def _check_conflicts(self, group: AffinityGroup) -> None:
        others = [g for g in self._state.groups_of(group.cluster) if g.id != group.id]
        found = find_conflicts([flat(self._state, each) for each in (*others, group)])
        cluster = self._state.clusters[group.cluster]
        named = [(conflict.code, *self._names(conflict)) for conflict in found]
        for code, groups, hosts, vms in named:
            if code is EventCode.VM_TO_VM_AFFINITY_CONFLICTS:
                raise messages.conflict(
                    f"Affinity Group collision detected in unified affinity group of VMs:\n{vms}\n"
                    f" and negative affinity group:\n{groups} \n with VMs:\n {vms}"
                )
            if code.severity != "warning":
                raise messages.conflict(
                    "The following affinity groups, containing the indicated hosts and VMs, have VM to host"
                    " conflicts between positive and negative enforcing affinity groups.,"
                    f" Affinity Groups: {groups}, Hosts: {hosts}, VMs: {vms}"
                )
        for code, groups, hosts, vms in named:
            self._log(code, ADMIN, cluster=cluster, groups=groups, hosts=hosts, vms=vms)

    def _names(self, conflict: Conflict) -> tuple[str, str, str]:
        hosts = {self._state.hosts[host_id].name for host_id in conflict.hosts}
        vms = {self._state.vms[vm_id].name for vm_id in conflict.negative_vms or conflict.vms}
        return ",".join(sorted(conflict.groups)), ",".join(sorted(hosts)), ",".join(sorted(vms))


def _changed(record: Record, changes: Mapping[str, Any]) -> Record:
    """Give a group or a label as it is after a change."""
    lists = {members: tuple(changes[members]) for members in _KNOWN if members in changes}
    return replace(record, **{**changes, **lists})


def _edited(group: AffinityGroup, changes: Mapping[str, Any]) -> AffinityGroup:
    """Give a group as it is after a change, which never moves it to another cluster."""
    changed = _changed(group, {**changes, "cluster": group.cluster})
    return replace(changed, priority=shown_priority(changed.priority))


class LabelCommands(Commands):
    """Commands on affinity labels; all raise `Rejected`. Members are never checked for conflicts."""

    @locked
    def add(self, name: str, *, caller: Caller = ADMIN, **fields: Any) -> AffinityLabel:
        """Add a label with vms, hosts and implicit, if they are named; the name is unique over all (409)."""
        label = AffinityLabel(id=self._backend.new_id(), name=name, vms=(), hosts=())
        return self._put_label(_changed(label, fields), EventCode.USER_ADDED_AFFINITY_LABEL, caller)

    @locked
    def edit(self, label_id: str, *, caller: Caller = ADMIN, **changes: Any) -> AffinityLabel:
        """Change name, vms, hosts or implicit; lists replace the whole list. Raises `NotFound`."""
        label = _changed(existing(self._state.labels, label_id), changes)
        return self._put_label(label, EventCode.USER_UPDATED_AFFINITY_LABEL, caller)

    @locked
    def remove(self, label_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a label that has no members (409 else). Raises `NotFound`."""
        label = existing(self._state.labels, label_id)
        if label.vms or label.hosts:
            raise messages.cannot(
                "remove", "It is assigned to entities; take it off them first.", "Affinity Label"
            )
        for group in tuple(self._state.groups.values()):
            if label_id in (*group.vm_labels, *group.host_labels):
                lists = {"vm_labels": group.vm_labels, "host_labels": group.host_labels}
                left = {name: tuple(one for one in ids if one != label_id) for name, ids in lists.items()}
                self._state.put(self._state.groups, replace(group, **left))
        self._state.drop(self._state.labels, label_id)
        self._log(EventCode.USER_REMOVED_AFFINITY_LABEL, caller, label=label.name)

    @locked
    def add_member(self, label_id: str, members: str, member_id: str, *, caller: Caller = ADMIN) -> Vm | Host:
        """Put the label on one of `vms` or `hosts`; one that has it keeps it. Raises `NotFound`."""
        label = existing(self._state.labels, label_id)
        self.edit(label_id, caller=caller, **{members: dict.fromkeys((*getattr(label, members), member_id))})
        found: Vm | Host = getattr(self._state, members)[member_id]
        return found

    @locked
    def remove_member(self, label_id: str, members: str, member_id: str, *, caller: Caller = ADMIN) -> None:
        """Take one of `vms` or `hosts` out; raises `NotFound` when it is no member."""
        left = dict.fromkeys(getattr(existing(self._state.labels, label_id), members))
        existing(left, member_id)
        del left[member_id]
        self.edit(label_id, caller=caller, **{members: left})

    def _put_label(self, label: AffinityLabel, code: EventType, caller: Caller) -> AffinityLabel:
        for other in self._state.labels.values():
            if other.id != label.id and other.name == label.name:
                raise messages.conflict("Cannot add affinity label with a conflicting NAME.")
        for vm_id in label.vms:
            existing(self._state.vms, vm_id)
        for host_id in label.hosts:
            existing(self._state.hosts, host_id)
        self._state.put(self._state.labels, label)
        self._log(code, caller, label=label.name)
        return label
