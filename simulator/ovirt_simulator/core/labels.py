"""Affinity labels, and the tags that an administrator sorts VMs and hosts by.

Source: the engine's AddLabelCommand, UpdateLabelCommand, RemoveLabelCommand, AddTagCommand, and those that
attach.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from . import permissions, rejections
from .backend import Commands, locked
from .entities import ADMIN, ROOT_TAG, AffinityGroup, AffinityLabel, Caller, Tag
from .events import EventCode, EventType
from .rejections import NotFound, existing


class LabelCommands(Commands):
    """Commands on affinity labels; all raise `Rejected`. Members are never checked for conflicts."""

    @locked
    def add(
        self,
        name: str,
        *,
        vms: Sequence[str] = (),
        hosts: Sequence[str] = (),
        implicit: bool = False,
        caller: Caller = ADMIN,
    ) -> AffinityLabel:
        """Add a label; the name is unique over all labels (409)."""
        label = AffinityLabel(
            id=self._backend.new_id(), name=name, vms=tuple(vms), hosts=tuple(hosts), implicit=implicit
        )
        self._check(label)
        self._put(label, EventCode.USER_ADDED_AFFINITY_LABEL, caller)
        return label

    @locked
    def edit(
        self,
        label_id: str,
        *,
        name: str | None = None,
        vms: Sequence[str] | None = None,
        hosts: Sequence[str] | None = None,
        implicit: bool | None = None,
        caller: Caller = ADMIN,
    ) -> AffinityLabel:
        """Change what is not None; lists replace the whole list. Raises `NotFound`."""
        label = self._label(label_id)
        changes: dict[str, Any] = {
            "name": name,
            "vms": None if vms is None else tuple(vms),
            "hosts": None if hosts is None else tuple(hosts),
            "implicit": implicit,
        }
        label = replace(label, **{key: value for key, value in changes.items() if value is not None})
        self._check(label)
        self._put(label, EventCode.USER_UPDATED_AFFINITY_LABEL, caller)
        return label

    @locked
    def remove(self, label_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a label that has no members (409 else). Raises `NotFound`."""
        label = self._label(label_id)
        if label.vms or label.hosts:
            raise rejections.conflict(
                "Cannot remove Affinity Label. It is assigned to entities; take it off them first."
            )
        for group in tuple(self._state.groups.values()):
            self._take_out_of(group, label_id)
        self._state.drop(self._state.labels, label_id)
        self._log(EventCode.USER_REMOVED_AFFINITY_LABEL, caller, label=label.name)

    @locked
    def add_member(self, label_id: str, members: str, member_id: str, *, caller: Caller = ADMIN) -> None:
        """Put the label on one of `vms` or `hosts`; one that has it keeps it. Raises `NotFound`."""
        label = self._label(label_id)
        existing(getattr(self._state, members), member_id)
        ids = tuple(dict.fromkeys((*getattr(label, members), member_id)))
        self._put(replace(label, **{members: ids}), EventCode.USER_UPDATED_AFFINITY_LABEL, caller)

    @locked
    def remove_member(self, label_id: str, members: str, member_id: str, *, caller: Caller = ADMIN) -> None:
        """Take one of `vms` or `hosts` out; raises `NotFound` when it is no member."""
        label = self._label(label_id)
        present: tuple[str, ...] = getattr(label, members)
        if member_id not in present:
            raise NotFound(member_id)
        left = tuple(other for other in present if other != member_id)
        self._put(replace(label, **{members: left}), EventCode.USER_UPDATED_AFFINITY_LABEL, caller)

    def _label(self, label_id: str) -> AffinityLabel:
        return existing(self._state.labels, label_id)

    def _take_out_of(self, group: AffinityGroup, label_id: str) -> None:
        if label_id in (*group.vm_labels, *group.host_labels):
            vm_labels = tuple(label for label in group.vm_labels if label != label_id)
            host_labels = tuple(label for label in group.host_labels if label != label_id)
            changed = replace(group, vm_labels=vm_labels, host_labels=host_labels)
            self._state.put(self._state.groups, changed)

    def _check(self, label: AffinityLabel) -> None:
        for other in self._state.labels.values():
            if other.id != label.id and other.name == label.name:
                raise rejections.conflict("Cannot add affinity label with a conflicting NAME.")
        _check_known(label.vms, self._state.vms)
        _check_known(label.hosts, self._state.hosts)

    def _put(self, label: AffinityLabel, code: EventType, caller: Caller) -> None:
        self._state.put(self._state.labels, label)
        self._log(code, caller, label=label.name)


def _check_known(ids: Sequence[str], table: Mapping[str, object]) -> None:
    for entity_id in ids:
        if entity_id not in table:
            raise NotFound(entity_id)


class TagCommands(Commands):
    """Commands on tags; all raise `NotFound` for what is not there.

    Their events name the VMs, and do not refer to them.
    """

    @locked
    def add(self, name: str, *, description: str | None = None, caller: Caller = ADMIN) -> Tag:
        """Add a tag; the name is unique (409)."""
        if any(tag.name == name for tag in (ROOT_TAG, *self._state.tags.values())):
            raise rejections.conflict("The specified Tag name already exists.")
        tag = Tag(id=self._backend.new_id(), name=name, description=description)
        self._state.put(self._state.tags, tag)
        self._log(EventCode.USER_ADD_TAG, caller, tag=name)
        return tag

    @locked
    def update(self, tag_id: str, *, name: str, caller: Caller = ADMIN) -> Tag:
        """Give a tag another name; what has the tag has it under that."""
        before = existing(self._state.tags, tag_id)
        tag = replace(before, name=name)
        self._state.put(self._state.tags, tag)
        self._rename(before.name, (name,))
        self._log(EventCode.USER_UPDATE_TAG, caller, tag=name)
        return tag

    @locked
    def remove(self, tag_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a tag, which is taken off all VMs."""
        tag = existing(self._state.tags, tag_id)
        self._state.drop(self._state.tags, tag_id)
        self._rename(tag.name, ())
        self._log(EventCode.USER_REMOVE_TAG, caller, tag=tag.name)

    @locked
    def attach(self, tag_id: str, vm_id: str, *, caller: Caller = ADMIN) -> Tag:
        """Put a tag on a VM; one that has it keeps it."""
        tag, vm = existing(self._state.tags, tag_id), existing(self._state.vms, vm_id)
        code = EventCode.USER_ATTACH_TAG_TO_VM
        if tag.name in vm.tags:
            code = EventCode.USER_ATTACH_TAG_TO_VM_EXISTS
        tags = tuple(dict.fromkeys((*vm.tags, tag.name)))
        permissions.settle(self._state, replace(vm, tags=tags))
        self._log(code, caller, tag=tag.name, names=vm.name)
        return tag

    @locked
    def detach(self, tag_id: str, vm_id: str, *, caller: Caller = ADMIN) -> None:
        """Take a tag off a VM."""
        tag, vm = existing(self._state.tags, tag_id), existing(self._state.vms, vm_id)
        tags = tuple(name for name in vm.tags if name != tag.name)
        permissions.settle(self._state, replace(vm, tags=tags))
        self._log(EventCode.USER_DETACH_VM_FROM_TAG, caller, tag=tag.name, names=vm.name)

    def _rename(self, name: str, names: tuple[str, ...]) -> None:
        """Put another name of a tag, or none, in this one's place on all VMs."""
        for vm in tuple(self._state.vms.values()):
            if name in vm.tags:
                tags = (*(tag for tag in vm.tags if tag != name), *names)
                permissions.settle(self._state, replace(vm, tags=tags))
