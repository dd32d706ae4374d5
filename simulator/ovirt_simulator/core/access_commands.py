"""Whom VMs belong to: permissions on them and on clusters.

Source: the engine's AddPermissionCommand and RemovePermissionCommand.
"""

from __future__ import annotations

from msgspec.structs import replace

from . import ownership, refusals
from .backend import Backend
from .built_in_roles import ROLES
from .entities import ADMIN, Caller, Permission, Vm
from .event_codes import EventCode
from .rejections import NotFound


class AccessCommands:
    """Commands on permissions; all raise `NotFound` for what is not there.

    Their events name the VM or cluster, and do not refer to it.
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
