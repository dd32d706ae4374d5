"""Who may log in and what they may do: a small table in place of the engine's roles and permissions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class Permit(StrEnum):
    """The permits that the resources here ask for, as the REST API spells them."""

    CREATE_VM = "create_vm"
    DELETE_VM = "delete_vm"
    CHANGE_VM_CD = "change_vm_cd"
    CONNECT_TO_VM = "connect_to_vm"
    MANIPULATE_VM_SNAPSHOTS = "manipulate_vm_snapshots"
    CREATE_VM_POOL = "create_vm_pool"
    EDIT_VM_POOL_CONFIGURATION = "edit_vm_pool_configuration"
    DELETE_VM_POOL = "delete_vm_pool"
    CREATE_TEMPLATE = "create_template"
    DELETE_TEMPLATE = "delete_template"
    CREATE_DISK = "create_disk"
    EDIT_DISK_PROPERTIES = "edit_disk_properties"
    DELETE_DISK = "delete_disk"
    CREATE_HOST = "create_host"
    EDIT_HOST_CONFIGURATION = "edit_host_configuration"
    DELETE_HOST = "delete_host"
    CREATE_CLUSTER = "create_cluster"
    DELETE_CLUSTER = "delete_cluster"
    INJECT_EXTERNAL_TASKS = "inject_external_tasks"
    EDIT_VM_PROPERTIES = "edit_vm_properties"
    MIGRATE_VM = "migrate_vm"
    RUN_VM = "run_vm"
    STOP_VM = "stop_vm"
    REBOOT_VM = "reboot_vm"
    RESET_VM = "reset_vm"
    MANIPULATE_HOST = "manipulate_host"
    MANIPULATE_AFFINITY_GROUPS = "manipulate_affinity_groups"
    TAG_MANAGEMENT = "tag_management"
    MANIPULATE_ROLES = "manipulate_roles"
    MANIPULATE_USERS = "manipulate_users"
    MANIPULATE_PERMISSIONS = "manipulate_permissions"
    INJECT_EXTERNAL_EVENTS = "inject_external_events"
    AUDIT_LOG_MANAGEMENT = "audit_log_management"
    EDIT_STORAGE_DOMAIN_CONFIGURATION = "edit_storage_domain_configuration"
    MANIPULATE_STORAGE_DOMAIN = "manipulate_storage_domain"
    CREATE_STORAGE_POOL = "create_storage_pool"
    DELETE_STORAGE_POOL = "delete_storage_pool"
    EDIT_STORAGE_POOL_CONFIGURATION = "edit_storage_pool_configuration"
    ASSIGN_CLUSTER_NETWORK = "assign_cluster_network"
    CONFIGURE_CLUSTER_NETWORK = "configure_cluster_network"
    CREATE_MAC_POOL = "create_mac_pool"
    EDIT_MAC_POOL = "edit_mac_pool"
    DELETE_MAC_POOL = "delete_mac_pool"
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
