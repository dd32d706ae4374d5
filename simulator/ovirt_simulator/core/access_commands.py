"""Who may do what: permissions on VMs, clusters and what else has them.

Source: the engine's AddPermissionCommand and RemovePermissionCommand.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from . import ownership, refusals
from .access import Permission
from .backend import Backend
from .entities import ADMIN, Caller, Vm
from .event_codes import EventCode
from .rejections import NotFound
from .state import Named

#: How events call what permissions are on, by the field of a permission that has its id.
_KINDS = {
    "vm": "VM",
    "cluster": "Cluster",
    "network": "Network",
    "host": "Host",
    "data_center": "Data Center",
}


class AccessCommands:
    """Commands on permissions; all raise `NotFound` for what is not there.

    Their events name what the permission is on, and do not refer to it.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def grant(
        self,
        role: str,
        holder: str,
        *,
        is_group: bool = False,
        caller: Caller = ADMIN,
        **on: str | None,
    ) -> Permission:
        """Give a user or group a role, by its id, on something; who has it keeps it.

        `on` is the id of that, under the name of a permission's field: `vm`, `cluster`, `network` ...
        """
        with self._backend.lock:
            permission = Permission(id="", role=role, holder=holder, is_group=is_group, **on)
            if role not in self._state.roles:
                raise refusals.bad_parameters(
                    "PERMISSION_ADD_FAILED_INVALID_ROLE_ID", "Cannot add Permission. Invalid role id."
                )
            self._object(permission)
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
        kind, name = self._object(permission)
        if permission.vm is not None:
            self._own(self._state.vms[permission.vm])
        role = self._state.roles[permission.role].name
        self._log(code, caller, subject=permission.holder, role=role, type=kind, object=name)

    def _object(self, permission: Permission) -> tuple[str, str]:
        """Give the kind and the name of what the permission is on."""
        state = self._state
        tables: dict[str, Mapping[str, Named]] = {
            "vm": state.vms,
            "cluster": state.clusters,
            "network": state.networks,
            "host": state.hosts,
            "data_center": state.data_centers,
        }
        for field, table in tables.items():
            identity = getattr(permission, field)
            if identity is not None:
                if identity not in table:
                    raise NotFound(identity)
                return _KINDS[field], table[identity].name
        raise NotFound(permission.id)

    def _own(self, vm: Vm) -> None:
        self._state.put_vm(replace(vm, owner=ownership.owner(self._state, vm)))

    def _log(self, code: EventCode, caller: Caller, **words: str) -> None:
        self._backend.audit_log.log(code, caller, words=words)
