"""To whom a VM belongs: the state file names an owner, the engine has permissions and tags.

Source: the roles of the engine's packaging/dbscripts/data/00500_insert_roles.sql; the tag is this project's
(docs/placement-keys.md).
"""

from __future__ import annotations

from msgspec.structs import replace

from ovirt_placement import model

from .access import Permission
from .built_in_roles import USER_ROLE, USER_VM_MANAGER
from .entities import Vm, stable_id
from .state import State

#: What stands after it in the name of a VM's tag is the owner, whatever the permissions.
OWNER_TAG = "pk-customer-"


def grant(state: State, vm: model.Vm) -> None:
    """Make the owner whom the state file names the VM's manager, unless a tag names the owner."""
    if vm.owner is not None and not _named_by_tags(vm):
        identity = stable_id("permission", f"{vm.id}/{vm.owner}")
        state.put(
            state.permissions,
            Permission(id=identity, role=USER_VM_MANAGER.id, holder=vm.owner, vm=vm.id),
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
