"""Who may log in and what they may do: a small table in place of the engine's roles and permissions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class Permit(StrEnum):
    """The permits that the resources here ask for, as the REST API spells them."""

    EDIT_VM_PROPERTIES = "edit_vm_properties"
    MIGRATE_VM = "migrate_vm"
    RUN_VM = "run_vm"
    STOP_VM = "stop_vm"
    REBOOT_VM = "reboot_vm"
    RESET_VM = "reset_vm"
    EDIT_HOST_CONFIGURATION = "edit_host_configuration"
    EDIT_STORAGE_POOL_CONFIGURATION = "edit_storage_pool_configuration"
    MANIPULATE_HOST = "manipulate_host"
    MANIPULATE_AFFINITY_GROUPS = "manipulate_affinity_groups"
    TAG_MANAGEMENT = "tag_management"
    MANIPULATE_PERMISSIONS = "manipulate_permissions"
    INJECT_EXTERNAL_EVENTS = "inject_external_events"
    EDIT_CLUSTER_CONFIGURATION = "edit_cluster_configuration"


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A user with its permits.

    An `admin` has a role of type admin: its queries are unfiltered. Any other user's queries are
    filtered by default, show only `vms` (ids) and their clusters, and are denied for affinity groups, labels
    and scheduling policies.
    """

    #: None lets any password in.
    password: str | None
    admin: bool = False
    permits: frozenset[Permit] = frozenset()
    vms: frozenset[str] = frozenset()

    def may(self, permit: Permit) -> bool:
        return permit in self.permits


#: Users by full name, name@profile.
Users = Mapping[str, User]


def default_users(password: str | None) -> dict[str, User]:
    """The users of a simulator that was given none, all with one password.

    `admin@internal` is a SuperUser, `reader@internal` a ReadOnlyAdmin, `user@internal` may just log in.
    """
    return {
        "admin@internal": User(password=password, admin=True, permits=frozenset(Permit)),
        "reader@internal": User(password=password, admin=True),
        "user@internal": User(password=password),
    }
