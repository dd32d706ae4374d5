"""Roles: made of permits, changed and removed; the predefined ones stay as they are.

Source: the engine's AddRoleWithActionGroupsCommand, UpdateRoleCommand, RemoveRoleCommand,
AttachActionGroupsToRoleCommand and DetachActionGroupsFromRoleCommand.
"""

from __future__ import annotations

from msgspec.structs import replace

from .access import Role
from .backend import Backend
from .entities import ADMIN, Caller
from .event_codes import EventCode, EventType
from .permits import PERMITS
from .refusals import bad_parameters, conflict
from .rejections import NotFound, Rejected, existing


class RoleCommands:
    """Commands on roles; all raise `Rejected` or `NotFound`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def add(self, role: Role, *, caller: Caller = ADMIN) -> Role:
        """Add a role, whose id it gets here."""
        with self._backend.lock:
            if not role.permits:
                raise bad_parameters("ACTION_LIST_CANNOT_BE_EMPTY", "Actions list cannot be empty.")
            self._check_name(role, "add")
            _check_permits(role)
            role = replace(role, id=self._backend.new_id())
            self._state.put(self._state.roles, role)
            self._log(EventCode.USER_ADD_ROLE_WITH_ACTION_GROUP, role, caller)
            return role

    def edit(
        self, role_id: str, name: str | None, description: str | None, *, caller: Caller = ADMIN
    ) -> Role:
        """Change the name and the description, where they are given."""
        with self._backend.lock:
            before = self._mutable(role_id, "edit Role")
            role = replace(
                before,
                name=before.name if name is None else name,
                description=before.description if description is None else description,
            )
            self._check_name(role, "edit")
            self._state.put(self._state.roles, role)
            self._log(EventCode.USER_UPDATE_ROLE, role, caller)
            return role

    def remove(self, role_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a role that nobody has."""
        with self._backend.lock:
            role = self._mutable(role_id, "remove Role")
            if any(permission.role == role_id for permission in self._state.permissions.values()):
                raise conflict(
                    "ERROR_CANNOT_REMOVE_ROLE_ATTACHED_TO_PERMISSION",
                    "One or more Permissions is still associated with Role.\n"
                    "- Please remove all Permissions first.",
                )
            self._state.drop(self._state.roles, role_id)
            self._log(EventCode.USER_REMOVE_ROLE, role, caller)

    def attach(self, role_id: str, permit_id: str, *, caller: Caller = ADMIN) -> None:
        """Give a role a permit that it has not."""
        with self._backend.lock:
            role = self._mutable(role_id, "attach Role")
            if permit_id in role.permits:
                raise conflict(
                    "ERROR_CANNOT_ATTACH_ACTION_GROUP_TO_ROLE_ATTACHED",
                    "Cannot attach action group to Role. This action group is already attached to Role.",
                )
            role = replace(role, permits=(*role.permits, permit_id))
            _check_permits(role)
            self._state.put(self._state.roles, role)
            self._log(EventCode.USER_ATTACHED_ACTION_GROUP_TO_ROLE, role, caller, permit_id)

    def detach(self, role_id: str, permit_id: str, *, caller: Caller = ADMIN) -> None:
        """Take a permit from a role that has it."""
        with self._backend.lock:
            role = self._mutable(role_id, "detach Role")
            if permit_id not in role.permits:
                raise NotFound(permit_id)
            left = tuple(each for each in role.permits if each != permit_id)
            self._state.put(self._state.roles, replace(role, permits=left))
            self._log(EventCode.USER_DETACHED_ACTION_GROUP_FROM_ROLE, role, caller, permit_id)

    def _mutable(self, role_id: str, doing: str) -> Role:
        role = existing(self._state.roles, role_id)
        if not role.mutable:
            raise conflict("ACTION_TYPE_FAILED_ROLE_IS_READ_ONLY", f"Cannot {doing}. The Role is Read-Only.")
        return role

    def _check_name(self, role: Role, action: str) -> None:
        known = self._state.roles.values()
        if any(each.name == role.name and each.id != role.id for each in known):
            raise conflict(
                "ACTION_TYPE_FAILED_NAME_ALREADY_USED",
                f"Cannot {action} Role."
                " The Role name is already in use, please choose a unique name and try again.",
            )

    def _log(self, code: EventType, role: Role, caller: Caller, permit_id: str | None = None) -> None:
        permit = "" if permit_id is None else PERMITS[permit_id].name.upper()
        self._backend.audit_log.log(code, caller, words={"role": role.name, "permit": permit})


def _check_permits(role: Role) -> None:
    if not role.administrative and any(PERMITS[permit].administrative for permit in role.permits):
        raise _administrative()


def _administrative() -> Rejected:
    return conflict(
        "CANNOT_ADD_ACTION_GROUPS_TO_ROLE_TYPE", "Cannot add administrator's action group to a User Role."
    )
