"""The tags that an administrator sorts VMs, hosts, users and groups by: a tree, put on and taken off.

Source: the engine's AddTagCommand, UpdateTagCommand, RemoveTagCommand, MoveTagCommand, and those that attach.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from . import ownership, refusals
from .access import HoldersTags, Principal
from .backend import Backend
from .entities import ADMIN, ROOT_TAG, Caller, Host, Tag, Vm
from .event_codes import EventCode, EventType
from .rejections import NotFound, existing


class TagCommands:
    """Commands on tags; all raise `NotFound` for what is not there.

    Their events name the VMs and hosts, and do not refer to them.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def add(
        self,
        name: str,
        *,
        description: str | None = None,
        parent: str | None = None,
        caller: Caller = ADMIN,
    ) -> Tag:
        """Add a tag; the name is unique (409)."""
        with self._backend.lock:
            self._check_free(name)
            tag = Tag(
                id=self._backend.new_id(),
                name=name,
                description=description,
                parent=self._known(parent or ROOT_TAG.id).id,
            )
            self._state.put(self._state.tags, tag)
            self._log(EventCode.USER_ADD_TAG, caller, tag=name)
            return tag

    def update(
        self,
        tag_id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        parent: str | None = None,
        caller: Caller = ADMIN,
    ) -> Tag:
        """Change what is named; whatever carries the tag carries it under its new name."""
        with self._backend.lock:
            tag = self._known(tag_id)
            if tag.id == ROOT_TAG.id:
                raise refusals.tag_read_only()
            if name is not None and name != tag.name:
                self._check_free(name)
            if parent is not None and tag in self._upwards(parent):
                raise refusals.tag_its_own_parent()
            changed = replace(
                tag,
                name=name or tag.name,
                description=tag.description if description is None else description,
                parent=parent or tag.parent,
            )
            self._state.put(self._state.tags, changed)
            self._rename(tag.name, (changed.name,))
            self._log(EventCode.USER_UPDATE_TAG, caller, tag=changed.name)
            return changed

    def remove(self, tag_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a tag with all below it; whatever carries them carries them no more."""
        with self._backend.lock:
            tag = self._known(tag_id)
            if tag.id == ROOT_TAG.id:
                raise refusals.tag_read_only()
            for each in [each for each in self._state.tags.values() if tag in self._upwards(each.id)]:
                self._rename(each.name, ())
                self._state.drop(self._state.tags, each.id)
            self._log(EventCode.USER_REMOVE_TAG, caller, tag=tag.name)

    def attach(self, tag_id: str, vm_id: str, *, caller: Caller = ADMIN) -> Tag:
        """Put a tag on a VM; one that has it keeps it."""
        with self._backend.lock:
            tag, vm = self._known(tag_id), self._vm(vm_id)
            code = EventCode.USER_ATTACH_TAG_TO_VM
            if tag.name in vm.tags:
                code = EventCode.USER_ATTACH_TAG_TO_VM_EXISTS
            self._put_vm(vm, tuple(dict.fromkeys((*vm.tags, tag.name))))
            self._log(code, caller, tag=tag.name, names=vm.name)
            return tag

    def detach(self, tag_id: str, vm_id: str, *, caller: Caller = ADMIN) -> None:
        """Take a tag off a VM."""
        with self._backend.lock:
            tag, vm = self._known(tag_id), self._vm(vm_id)
            self._put_vm(vm, tuple(name for name in vm.tags if name != tag.name))
            self._log(EventCode.USER_DETACH_VM_FROM_TAG, caller, tag=tag.name, names=vm.name)

    def attach_to_host(self, tag_id: str, host_id: str, *, caller: Caller = ADMIN) -> Tag:
        """Put a tag on a host; one that has it keeps it."""
        with self._backend.lock:
            tag, host = self._known(tag_id), self._host(host_id)
            code = EventCode.USER_ATTACH_TAG_TO_VDS
            if tag.name in host.tags:
                code = EventCode.USER_ATTACH_TAG_TO_VDS_EXISTS
            self._put_host(host, tuple(dict.fromkeys((*host.tags, tag.name))))
            self._log(code, caller, tag=tag.name, names=host.name)
            return tag

    def detach_from_host(self, tag_id: str, host_id: str, *, caller: Caller = ADMIN) -> None:
        """Take a tag off a host."""
        with self._backend.lock:
            tag, host = self._known(tag_id), self._host(host_id)
            self._put_host(host, tuple(name for name in host.tags if name != tag.name))
            self._log(EventCode.USER_DETACH_VDS_FROM_TAG, caller, tag=tag.name, names=host.name)

    def attach_to_holder(self, tag_id: str, holder: Principal, *, caller: Caller = ADMIN) -> Tag:
        """Put a tag on a user or group, taken from a directory or not; one that has it keeps it."""
        with self._backend.lock:
            tag, tags = self._known(tag_id), self._tags_of(holder.id)
            code, again = EventCode.USER_ATTACH_TAG_TO_USER, EventCode.USER_ATTACH_TAG_TO_USER_EXISTS
            if holder.is_group:
                code = EventCode.USER_ATTACH_TAG_TO_USER_GROUP
                again = EventCode.USER_ATTACH_TAG_TO_USER_GROUP_EXISTS
            self._put_on_holder(holder.id, tuple(dict.fromkeys((*tags, tag.name))))
            self._log(again if tag.name in tags else code, caller, tag=tag.name, names=holder.name)
            return tag

    def detach_from_holder(self, tag_id: str, holder: Principal, *, caller: Caller = ADMIN) -> None:
        """Take a tag off a user or group."""
        with self._backend.lock:
            tag, tags = self._known(tag_id), self._tags_of(holder.id)
            code = EventCode.USER_DETACH_USER_FROM_TAG
            if holder.is_group:
                code = EventCode.USER_DETACH_USER_GROUP_FROM_TAG
            self._put_on_holder(holder.id, tuple(name for name in tags if name != tag.name))
            self._log(code, caller, tag=tag.name, names=holder.name)

    def _check_free(self, name: str) -> None:
        if any(tag.name == name for tag in (ROOT_TAG, *self._state.tags.values())):
            raise refusals.tag_name_used()

    def _known(self, tag_id: str) -> Tag:
        tag = ROOT_TAG if tag_id == ROOT_TAG.id else self._state.tags.get(tag_id)
        if tag is None:
            raise NotFound(tag_id)
        return tag

    def _upwards(self, tag_id: str) -> Iterator[Tag]:
        """Give the tag and those above it, without the root."""
        wanted: str | None = tag_id
        while wanted is not None and wanted != ROOT_TAG.id:
            tag = self._known(wanted)
            yield tag
            wanted = tag.parent

    def _rename(self, name: str, names: tuple[str, ...]) -> None:
        """Put other names of tags, or none, in this one's place wherever it is."""
        if names == (name,):
            return
        for vm in tuple(self._state.vms.values()):
            if name in vm.tags:
                self._put_vm(vm, _replaced(vm.tags, name, names))
        for host in tuple(self._state.hosts.values()):
            if name in host.tags:
                self._put_host(host, _replaced(host.tags, name, names))
        for holder in tuple(self._state.holders_tags.values()):
            if name in holder.tags:
                self._put_on_holder(holder.id, _replaced(holder.tags, name, names))

    def _vm(self, vm_id: str) -> Vm:
        return existing(self._state.vms, vm_id)

    def _host(self, host_id: str) -> Host:
        return existing(self._state.hosts, host_id)

    def _put_vm(self, vm: Vm, tags: tuple[str, ...]) -> None:
        ownership.settle(self._state, replace(vm, tags=tags))

    def _tags_of(self, holder_id: str) -> tuple[str, ...]:
        held = self._state.holders_tags.get(holder_id)
        return () if held is None else held.tags

    def _put_on_holder(self, holder_id: str, tags: tuple[str, ...]) -> None:
        self._state.put(self._state.holders_tags, HoldersTags(id=holder_id, tags=tags))

    def _put_host(self, host: Host, tags: tuple[str, ...]) -> None:
        self._state.put(self._state.hosts, replace(host, tags=tags))

    def _log(self, code: EventType, caller: Caller, **words: str) -> None:
        self._backend.audit_log.log(code, caller, words=words)


def _replaced(tags: tuple[str, ...], name: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(new for tag in tags for new in (names if tag == name else (tag,)))
