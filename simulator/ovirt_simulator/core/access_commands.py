"""Who may do what: permissions on VMs, clusters, what else has them, and the whole system.

Source: the engine's AddPermissionCommand and RemovePermissionCommand; its API uses them for the whole
system, too, and not those that have this in their names.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from . import ownership, refusals
from .access import Permission
from .backend import Backend
from .entities import ADMIN, Caller
from .event_codes import EventCode, EventType
from .rejections import existing
from .state import Named

#: How events call what permissions are on, by the field of a permission that has its id.
_KINDS = {
    "vm": "VM",
    "cluster": "Cluster",
}
#: The kind and the name of what a permission without any object is on.
_SYSTEM = ("System", "System")


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

        `on` is the id of that, under the name of a permission's field: `vm`, `cluster`, `network` ...;
        without it, the role is on the whole system. Raises `Rejected` if there is no such role or object
        (400), and if the VM is one of a pool (409).
        """
        with self._backend.lock:
            permission = Permission(id="", role=role, holder=holder, is_group=is_group, **on)
            if role not in self._state.roles:
                raise refusals.bad_parameters(
                    "PERMISSION_ADD_FAILED_INVALID_ROLE_ID", "Cannot add permission, invalid Role id"
                )
            self._object(permission)
            for known in self._state.permissions.values():
                if replace(known, id="") == permission:
                    return known
            permission = replace(permission, id=self._backend.new_id())
            self._state.put(self._state.permissions, permission)
            self._permitted(permission, EventCode.USER_ADD_PERMISSION, caller)
            return permission

    def revoke(self, permission_id: str, *, user: str | None = None, caller: Caller = ADMIN) -> None:
        """Take a permission away: of this user, if one is named, or it is refused (409)."""
        with self._backend.lock:
            permission = existing(self._state.permissions, permission_id)
            if user not in (None, permission.holder):
                raise refusals.conflict(
                    "INHERITED_PERMISSION_CANT_BE_REMOVED", "Cannot remove inherited permission"
                )
            self._state.drop(self._state.permissions, permission_id)
            self._permitted(permission, EventCode.USER_REMOVE_PERMISSION, caller)

    def _permitted(self, permission: Permission, code: EventType, caller: Caller) -> None:
        kind, name = self._object(permission)
        if permission.vm is not None:
            ownership.settle(self._state, self._state.vms[permission.vm])
        role = self._state.roles[permission.role].name
        subject = permission.holder
        self._log(code, caller, subject=subject, role=role, type=kind, object=name)

    def _object(self, permission: Permission) -> tuple[str, str]:
        """Give the kind and the name of what the permission is on."""
        state = self._state
        tables: dict[str, Mapping[str, Named]] = {
            "vm": state.vms,
            "cluster": state.clusters,
        }
        for field, table in tables.items():
            identity = getattr(permission, field)
            if identity is not None:
                if identity not in table:
                    raise refusals.bad_parameters(
                        "PERMISSION_ADD_FAILED_INVALID_OBJECT_ID",
                        "Cannot add permission, invalid object ID or type",
                    )
                return _KINDS[field], table[identity].name
        return _SYSTEM

    def _log(self, code: EventType, caller: Caller, **words: str) -> None:
        self._backend.audit_log.log(code, caller, words=words)
