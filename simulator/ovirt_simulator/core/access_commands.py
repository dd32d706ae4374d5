"""Whom VMs belong to: permissions on them and on clusters, and the tags that an administrator sorts them by.

Source: the engine's AddPermissionCommand, RemovePermissionCommand, AttachVmsToTagCommand.
"""

from __future__ import annotations

from msgspec.structs import replace

from . import ownership, refusals
from .backend import Backend
from .built_in_roles import ROLES
from .entities import ADMIN, Caller, Permission, Tag, Vm
from .event_codes import EventCode
from .rejections import NotFound


class AccessCommands:
    """Commands on permissions and tags; all raise `NotFound` for what is not there.

    Their events name the VMs, and do not refer to them.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def grant(
        self,
        role: str,
        holder: str,
        *,
        vm: str | None = None,
        cluster: str | None = None,
        is_group: bool = False,
        caller: Caller = ADMIN,
    ) -> Permission:
        """Give a user or group a role, by its id, on a VM or a cluster; who has it keeps it."""
        with self._backend.lock:
            if role not in ROLES:
                raise refusals.bad_parameters(
                    "PERMISSION_ADD_FAILED_INVALID_ROLE_ID", "Cannot add Permission. Invalid role id."
                )
            for wanted, table in ((vm, self._state.vms), (cluster, self._state.clusters)):
                if wanted is not None and wanted not in table:
                    raise NotFound(wanted)
            permission = Permission(
                id="", role=role, holder=holder, is_group=is_group, vm=vm, cluster=cluster
            )
            for known in self._state.permissions.values():
                if replace(known, id="") == permission:
                    return known
            permission = replace(permission, id=self._backend.new_id())
            self._state.put(self._state.permissions, permission)
            self._permitted(permission, EventCode.USER_ADD_PERMISSION, caller)
            return permission

    def revoke(self, permission_id: str, *, caller: Caller = ADMIN) -> None:
        """Take a permission away."""
        with self._backend.lock:
            permission = self._state.permissions.get(permission_id)
            if permission is None:
                raise NotFound(permission_id)
            self._state.drop(self._state.permissions, permission_id)
            self._permitted(permission, EventCode.USER_REMOVE_PERMISSION, caller)

    def add_tag(self, name: str, *, caller: Caller = ADMIN) -> Tag:
        """Add a tag; the name is unique (409)."""
        with self._backend.lock:
            if any(tag.name == name for tag in self._state.tags.values()):
                raise refusals.conflict(
                    "TAGS_SPECIFIED_TAG_IS_IN_USE", "Cannot add Tag. The specified name is in use."
                )
            tag = Tag(id=self._backend.new_id(), name=name)
            self._state.put(self._state.tags, tag)
            self._log(EventCode.USER_ADD_TAG, caller, tag=name)
            return tag

    def attach_tag(self, tag_id: str, vm_id: str, *, caller: Caller = ADMIN) -> Tag:
        """Put a tag on a VM; one that has it keeps it."""
        with self._backend.lock:
            tag, vm = self._tagged(tag_id, vm_id)
            self._own(replace(vm, tags=tuple(dict.fromkeys((*vm.tags, tag.name)))))
            self._log(EventCode.USER_ATTACH_TAG_TO_VM, caller, tag=tag.name, vms=vm.name)
            return tag

    def detach_tag(self, tag_id: str, vm_id: str, *, caller: Caller = ADMIN) -> None:
        """Take a tag off a VM."""
        with self._backend.lock:
            tag, vm = self._tagged(tag_id, vm_id)
            self._own(replace(vm, tags=tuple(name for name in vm.tags if name != tag.name)))
            self._log(EventCode.USER_DETACH_VM_FROM_TAG, caller, tag=tag.name, vms=vm.name)

    def _tagged(self, tag_id: str, vm_id: str) -> tuple[Tag, Vm]:
        tag, vm = self._state.tags.get(tag_id), self._state.vms.get(vm_id)
        if tag is None or vm is None:
            raise NotFound(tag_id if tag is None else vm_id)
        return tag, vm

    def _permitted(self, permission: Permission, code: EventCode, caller: Caller) -> None:
        if permission.vm is not None:
            vm = self._state.vms[permission.vm]
            self._own(vm)
            kind, name = "VM", vm.name
        else:
            kind, name = "Cluster", self._state.clusters[permission.cluster or ""].name
        role = ROLES[permission.role].name
        self._log(code, caller, subject=permission.holder, role=role, type=kind, object=name)

    def _own(self, vm: Vm) -> None:
        self._state.put_vm(replace(vm, owner=ownership.owner(self._state, vm)))

    def _log(self, code: EventCode, caller: Caller, **words: str) -> None:
        self._backend.audit_log.log(code, caller, words=words)
