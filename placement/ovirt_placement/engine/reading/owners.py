"""What hangs on a VM and costs look-ups of its own, and to whom it belongs: the engine knows no owner."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Flag, auto
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ovirt_placement.engine.parsing import xml
from ovirt_placement.engine.parsing.users import USER_ROLE, USER_VM_MANAGER, Grant
from ovirt_placement.engine.parsing.vms import FoundVm
from ovirt_placement.model import Vm

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection

#: What stands after it in the name of a VM's tag is the owner, with or without permissions.
OWNER_TAG = "pk-customer-"
_NOTHING: frozenset[str] = frozenset()


class Detail(Flag):
    """What to read of VMs besides themselves."""

    DISKS = auto()
    NICS = auto()
    OWNER = auto()  # and the tags, which may name one


NO_DETAILS = Detail(0)
ALL_DETAILS = ~NO_DETAILS

_FOLLOWED = {
    Detail.DISKS: ("disk_attachments.disk",),
    Detail.NICS: ("nics",),
    Detail.OWNER: ("tags", "permissions"),
}


def followed(details: Detail) -> tuple[str, ...]:
    """Name what the engine must follow from VMs for these."""
    return tuple(name for detail, names in _FOLLOWED.items() if detail in details for name in names)


def owner(tags: Iterable[str], grants: Collection[Grant]) -> str | None:
    """Say to whom a VM with these tags and permissions of its own belongs; None if that is not one.

    A tag names the owner. Else it is the holder of UserVmManager, and without one, of UserRole.
    """
    named = {tag.removeprefix(OWNER_TAG) for tag in tags if tag.startswith(OWNER_TAG)}
    managers, mere_users = (
        {grant.holder for grant in grants if grant.role == role} for role in (USER_VM_MANAGER, USER_ROLE)
    )
    claims = named or managers or mere_users
    return claims.pop() if len(claims) == 1 else None


def with_owners(
    connection: EngineConnection, found: Iterable[FoundVm], inherited: frozenset[str] = _NOTHING
) -> tuple[Vm, ...]:
    """Return VMs with their owners; `inherited` are ids of permissions that were known before as inherited.

    Costs one request if there is a permission to judge. Raises what `EngineConnection.get` raises.
    """
    found = tuple(found)
    if any(one.grants for one in found):
        inherited |= inherited_permissions(connection)
    return tuple(
        replace(vm, owner=owner(vm.tags, [grant for grant in grants if grant.id not in inherited]))
        if vm.tags or grants
        else vm
        for vm, grants in found
    )


def inherited_permissions(connection: EngineConnection) -> frozenset[str]:
    """Read the ids of all permissions that VMs inherit; raises what `EngineConnection.get` raises."""
    clusters = xml.root(connection.get("/clusters", follow="permissions"))
    return frozenset(map(xml.identity, clusters.iter("permission")))
