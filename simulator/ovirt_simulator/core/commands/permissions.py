"""Permissions, and to whom a VM belongs: the state file names an owner, the engine has permissions and tags.

Source: the engine's AddPermissionCommand and RemovePermissionCommand; its API uses them for the whole
system, too. The tag of an owner is this project's (docs/placement-keys.md).
"""

from __future__ import annotations

from msgspec.structs import replace

from ovirt_placement import model
from ovirt_simulator.core import rejections
from ovirt_simulator.core.backend import Commands, locked
from ovirt_simulator.core.entities import (
    ADMIN,
    USER_ROLE,
    USER_VM_MANAGER,
    Caller,
    Cluster,
    Permission,
    Vm,
    stable_id,
)
from ovirt_simulator.core.events import EventCode, EventType
from ovirt_simulator.core.rejections import existing
from ovirt_simulator.core.state import State


class AccessCommands(Commands):
    """Commands on permissions; all raise `NotFound` for what is not there.

    Their events name what the permission is on, and do not refer to it.
    """

    @locked
    def grant(
        self, role: str, holder: str, *, is_group: bool = False, caller: Caller = ADMIN, **on: str | None
    ) -> Permission:
        """Give a user or group a role, by its id, on something; who has it keeps it.

        `on` is the id of that, under the name of a permission's field: `vm`, `cluster`, `network` ...;
        without it, the role is on the whole system. Raises `Rejected` if there is no such role or object
        (400), and if the VM is one of a pool (409).
        """
        permission = Permission(id="", role=role, holder=holder, is_group=is_group, **on)
        if role not in self._state.roles:
            raise rejections.bad_parameters("Cannot add permission, invalid Role id")
        self._object(permission)
        for known in self._state.permissions.values():
            if replace(known, id="") == permission:
                return known
        permission = replace(permission, id=self._backend.new_id())
        self._state.put(self._state.permissions, permission)
        self._permitted(permission, EventCode.USER_ADD_PERMISSION, caller)
        return permission

    @locked
    def revoke(self, permission_id: str, *, user: str | None = None, caller: Caller = ADMIN) -> None:
        """Take a permission away: of this user, if one is named, or it is refused (409)."""
        permission = existing(self._state.permissions, permission_id)
        if user not in (None, permission.holder):
            raise rejections.conflict("Cannot remove inherited permission")
        self._state.drop(self._state.permissions, permission_id)
        self._permitted(permission, EventCode.USER_REMOVE_PERMISSION, caller)

    def _permitted(self, permission: Permission, code: EventType, caller: Caller) -> None:
        kind, name = self._object(permission)
        if permission.vm is not None:
            settle(self._state, self._state.vms[permission.vm])
        role = self._state.roles[permission.role].name
        subject = permission.holder
        self._log(code, caller, subject=subject, role=role, type=kind, object=name)

    def _object(self, permission: Permission) -> tuple[str, str]:
        """Give the kind and the name of what the permission is on."""
        found: Vm | Cluster | None
        if permission.vm is not None:
            kind, found = "VM", self._state.vms.get(permission.vm)
        elif permission.cluster is not None:
            kind, found = "Cluster", self._state.clusters.get(permission.cluster)
        else:
            return "System", "System"
        if found is None:
            raise rejections.bad_parameters("Cannot add permission, invalid object ID or type")
        return kind, found.name


#: What stands after it in the name of a VM's tag is the owner, whatever the permissions.
OWNER_TAG = "pk-customer-"


def grant(state: State, vm: model.Vm) -> None:
    """Make the owner whom the state file names the VM's manager, unless a tag names the owner."""
    if vm.owner is not None and not _named_by_tags(vm):
        identity = stable_id("permission", f"{vm.id}/{vm.owner}")
        state.put(
            state.permissions, Permission(id=identity, role=USER_VM_MANAGER.id, holder=vm.owner, vm=vm.id)
        )


def settle(state: State, vm: Vm) -> None:
    """Put the VM with whom it belongs to by now."""
    state.put_vm(replace(vm, owner=owner(state, vm)))


def owner(state: State, vm: Vm) -> str | None:
    """Whom the VM belongs to: the one whom a tag names, else its one manager, else its one user."""
    found = state.permissions_on(vm)
    managers, users = (
        {permission.holder for permission in found if permission.role == role.id}
        for role in (USER_VM_MANAGER, USER_ROLE)
    )
    claims = _named_by_tags(vm) or managers or users
    return claims.pop() if len(claims) == 1 else None


def _named_by_tags(vm: model.Vm) -> set[str]:
    return {tag.removeprefix(OWNER_TAG) for tag in vm.tags if tag.startswith(OWNER_TAG)}
