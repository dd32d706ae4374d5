"""Roles and permissions, and the engine's predefined roles that matter to placement.

Source: the engine's packaging/dbscripts/data/00500_insert_roles.sql and 00700_insert_roles_groups.sql; of the
permits those that anything here asks for.
"""

from __future__ import annotations

from ovirt_simulator.core.entities import Record


class Role(Record, frozen=True):
    id: str
    name: str
    description: str = ""
    administrative: bool = False
    #: The names of what it permits.
    permits: tuple[str, ...] = ()


class Permission(Record, frozen=True):
    """What a user or group may do with one VM, with a cluster and all that is in it, or with all."""

    id: str
    #: The id of the role.
    role: str
    #: The id of the user or group that has it.
    holder: str
    is_group: bool = False
    #: The id of the VM or cluster that it is on; without either it is on the whole system.
    vm: str | None = None
    cluster: str | None = None


_POWER = "run_vm stop_vm reboot_vm"
_OF_CLUSTERS = (
    f"login {_POWER} edit_vm_properties migrate_vm manipulate_host edit_host_configuration"
    " edit_cluster_configuration"
    " manipulate_affinity_groups manipulate_permissions audit_log_management"
)


def _role(identity: str, name: str, permits: str, *, administrative: bool = False) -> Role:
    return Role(id=identity, name=name, administrative=administrative, permits=tuple(permits.split()))


_ALL = (
    _role(
        "00000000-0000-0000-0000-000000000001",
        "SuperUser",
        f"{_OF_CLUSTERS} edit_storage_pool_configuration reset_vm tag_management inject_external_events",
        administrative=True,
    ),
    _role("00000000-0000-0000-0001-000000000001", "UserRole", f"login {_POWER}"),
    _role("def00001-0000-0000-0000-def000000001", "ClusterAdmin", _OF_CLUSTERS, administrative=True),
    _role(
        "def00002-0000-0000-0000-def000000002",
        "DataCenterAdmin",
        f"{_OF_CLUSTERS} edit_storage_pool_configuration",
        administrative=True,
    ),
    _role(
        "def00004-0000-0000-0000-def000000004",
        "HostAdmin",
        "login manipulate_host edit_host_configuration audit_log_management",
        administrative=True,
    ),
    _role("def00006-0000-0000-0000-def000000006", "UserVmManager", f"login {_POWER} edit_vm_properties"),
    _role("def0000c-0000-0000-0000-def000000000", "ExternalEventsCreator", "inject_external_events"),
    _role("def0000c-0000-0000-0000-def00000000c", "ReadOnlyAdmin", "login", administrative=True),
)

ROLES = {role.id: role for role in _ALL}
BY_NAME = {role.name: role for role in _ALL}
#: Those that make somebody the user of a VM.
USER_ROLE, USER_VM_MANAGER = BY_NAME["UserRole"], BY_NAME["UserVmManager"]
