"""The tags that an administrator sorts VMs and hosts by: put on and taken off.

Source: the engine's AddTagCommand, and those that attach.
"""

from __future__ import annotations

from msgspec.structs import replace

from . import ownership, refusals
from .backend import Backend
from .entities import ADMIN, ROOT_TAG, Caller, Tag
from .event_codes import EventCode, EventType
from .rejections import existing


class TagCommands:
    """Commands on tags; all raise `NotFound` for what is not there.

    Their events name the VMs, and do not refer to them.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def add(self, name: str, *, description: str | None = None, caller: Caller = ADMIN) -> Tag:
        """Add a tag; the name is unique (409)."""
        with self._backend.lock:
            if any(tag.name == name for tag in (ROOT_TAG, *self._state.tags.values())):
                raise refusals.conflict(
                    "TAGS_SPECIFY_TAG_IS_IN_USE", "The specified Tag name already exists."
                )
            tag = Tag(id=self._backend.new_id(), name=name, description=description)
            self._state.put(self._state.tags, tag)
            self._log(EventCode.USER_ADD_TAG, caller, tag=name)
            return tag

    def update(self, tag_id: str, *, name: str, caller: Caller = ADMIN) -> Tag:
        """Give a tag another name; what has the tag has it under that."""
        with self._backend.lock:
            before = existing(self._state.tags, tag_id)
            tag = replace(before, name=name)
            self._state.put(self._state.tags, tag)
            self._rename(before.name, (name,))
            self._log(EventCode.USER_UPDATE_TAG, caller, tag=name)
            return tag

    def remove(self, tag_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a tag, which is taken off all VMs."""
        with self._backend.lock:
            tag = existing(self._state.tags, tag_id)
            self._state.drop(self._state.tags, tag_id)
            self._rename(tag.name, ())
            self._log(EventCode.USER_REMOVE_TAG, caller, tag=tag.name)

    def attach(self, tag_id: str, vm_id: str, *, caller: Caller = ADMIN) -> Tag:
        """Put a tag on a VM; one that has it keeps it."""
        with self._backend.lock:
            tag, vm = existing(self._state.tags, tag_id), existing(self._state.vms, vm_id)
            code = EventCode.USER_ATTACH_TAG_TO_VM
            if tag.name in vm.tags:
                code = EventCode.USER_ATTACH_TAG_TO_VM_EXISTS
            tags = tuple(dict.fromkeys((*vm.tags, tag.name)))
            ownership.settle(self._state, replace(vm, tags=tags))
            self._log(code, caller, tag=tag.name, names=vm.name)
            return tag

    def detach(self, tag_id: str, vm_id: str, *, caller: Caller = ADMIN) -> None:
        """Take a tag off a VM."""
        with self._backend.lock:
            tag, vm = existing(self._state.tags, tag_id), existing(self._state.vms, vm_id)
            tags = tuple(name for name in vm.tags if name != tag.name)
            ownership.settle(self._state, replace(vm, tags=tags))
            self._log(EventCode.USER_DETACH_VM_FROM_TAG, caller, tag=tag.name, names=vm.name)

    def _rename(self, name: str, names: tuple[str, ...]) -> None:
        """Put another name of a tag, or none, in this one's place on all VMs."""
        for vm in tuple(self._state.vms.values()):
            if name in vm.tags:
                tags = (*(tag for tag in vm.tags if tag != name), *names)
                ownership.settle(self._state, replace(vm, tags=tags))

    def _log(self, code: EventType, caller: Caller, **words: str) -> None:
        self._backend.audit_log.log(code, caller, words=words)
