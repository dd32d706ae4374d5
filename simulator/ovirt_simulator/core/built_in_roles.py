"""The engine's predefined roles, which nobody can change, and the ids of what they permit.

Source: the engine's packaging/dbscripts/data/00500_insert_roles.sql and 00700_insert_roles_groups.sql.
"""

from __future__ import annotations

from .access import Role


def _role(identity: str, name: str, description: str, permits: str, *, administrative: bool = False) -> Role:
    return Role(
        id=identity,
        name=name,
        description=description,
        administrative=administrative,
        permits=tuple(permits.split()),
        mutable=False,
    )


_ALL = (
    _role(
        "00000000-0000-0000-0000-000000000001",
        "SuperUser",
        "Roles management administrator",
        "1 2 3 5 6 7 8 9 10 11 12 13 14 15 17 18 19 21 22 100 101 102 103 104 200 201 202 203 "
        "204 205 300 301 302 303 400 401 402 403 404 500 501 502 503 600 601 602 603 700 701 "
        "702 703 704 705 800 900 901 1000 1001 1002 1003 1004 1100 1101 1102 1103 1104 1105 "
        "1106 1107 1203 1204 1205 1300 1301 1302 1303 1304 1400 1500 1550 1560 1561 1562 1563 "
        "1660 1661 1662 1663 1664 1665 1666 1667 1668",
        administrative=True,
    ),
    _role(
        "00000000-0000-0000-0001-000000000001",
        "UserRole",
        "Standard User Role",
        "5 7 17 18 19 21 22 303 1106 1300",
    ),
    _role(
        "00000000-0000-0000-0001-000000000002",
        "PowerUserRole",
        "User Role, allowed to create VMs, Templates and Disks",
        "1 200 1100 1106 1300 1563 1665 1666 1667 1668",
    ),
    _role(
        "def00001-0000-0000-0000-def000000001",
        "ClusterAdmin",
        "Administrator Role, permission for all the objects underneath a specific Cluster",
        "1 2 3 5 6 7 8 9 10 11 12 14 15 17 18 19 21 22 100 101 102 103 104 300 301 302 303 400 "
        "401 402 403 502 503 1100 1101 1102 1103 1104 1107 1300 1301 1302 1303 1304 1550 1563 "
        "1665 1666 1667 1668",
        administrative=True,
    ),
    _role(
        "def00002-0000-0000-0000-def000000002",
        "DataCenterAdmin",
        "Administrator Role, permission for all the objects underneath a specific Data Center,"
        " except Storage",
        "1 2 3 5 6 7 8 9 10 11 12 14 15 17 18 19 21 22 100 101 102 103 104 200 201 202 203 204 "
        "205 300 301 302 303 400 401 402 403 404 502 503 700 701 702 703 704 705 900 901 1100 "
        "1101 1102 1103 1104 1105 1107 1203 1204 1205 1300 1301 1302 1303 1304 1550 1563 1663 "
        "1665 1666 1667 1668",
        administrative=True,
    ),
    _role(
        "def00003-0000-0000-0000-def000000003",
        "StorageAdmin",
        "Administrator Role, permission for all operations on a specific Storage Domain",
        "600 601 602 603 1100 1101 1102 1103 1104 1106 1107 1300 1301 1302 1303 1304 1560 1561 1562 1563",
        administrative=True,
    ),
    _role(
        "def00004-0000-0000-0000-def000000004",
        "HostAdmin",
        "Administrator Role, permission for all operations on a specific Host",
        "100 101 102 103 104 600 601 602 603 1300 1301 1302 1303 1304 1560 1561 1562 1563",
        administrative=True,
    ),
    _role(
        "def00005-0000-0000-0000-def000000005",
        "NetworkAdmin",
        "Administrator Role, permission for all operations on a specific Logical Network",
        "9 104 204 403 404 703 704 705 1203 1204 1205 1300 1301 1302 1303 1304",
        administrative=True,
    ),
    _role(
        "def00006-0000-0000-0000-def000000006",
        "UserVmManager",
        "User Role, with permission for any operation on Vms",
        "1 2 3 5 7 9 10 12 17 18 19 21 22 502 503 1100 1101 1102 1104 1300 1664 1668",
    ),
    _role(
        "def00007-0000-0000-0000-def000000007",
        "VmPoolAdmin",
        "Administrator Role, permission for all operations on a specific VM Pool",
        "1 300 301 302 303 1300 1301 1302 1303 1304 1668",
        administrative=True,
    ),
    _role(
        "def00008-0000-0000-0000-def000000008",
        "TemplateAdmin",
        "Administrator Role, permission for all operations on a specific Template",
        "200 201 202 203 204 205 502 503 1106 1300 1301 1302 1303 1304",
        administrative=True,
    ),
    _role(
        "def0000a-0000-0000-0000-def00000000a",
        "QuotaConsumer",
        "User Role, permissions to consume the Quota resources",
        "901",
    ),
    _role(
        "def0000a-0000-0000-0000-def00000000b",
        "DiskOperator",
        "User Role, permissions for all operations on a specific disk",
        "502 503 1100 1101 1102 1104 1300",
    ),
    _role(
        "def0000a-0000-0000-0000-def00000000c",
        "DiskCreator",
        "User Role, permission to create Disks",
        "1100 1300",
    ),
    _role(
        "def0000b-0000-0000-0000-def00000000b",
        "GlusterAdmin",
        "Administrator Role, permissions for operations on Gluster objects",
        "100 101 102 103 104 400 401 402 403 404 1000 1001 1002 1003 1004 1300 1301 1302 1303 1304",
        administrative=True,
    ),
    _role(
        "def0000a-0000-0000-0000-def00000000d",
        "VmCreator",
        "User Role, permission to create VMs",
        "1 1100 1300 1668",
    ),
    _role(
        "def0000a-0000-0000-0000-def00000000e",
        "TemplateCreator",
        "User Role, permission to create Templates",
        "200 1300",
    ),
    _role(
        "def0000a-0000-0000-0000-def00000000f",
        "TemplateOwner",
        "User Role, permissions for all operations on Templates",
        "201 202 203 204 502 503 1300",
    ),
    _role(
        "def0000c-0000-0000-0000-def000000000",
        "ExternalEventsCreator",
        "External Events Creator",
        "1400",
    ),
    _role(
        "def0000d-0000-0000-0000-def000000000",
        "ExternalTasksCreator",
        "External Tasks Creator",
        "1500",
    ),
    _role(
        "def0000a-0000-0000-0000-def000000010",
        "VnicProfileUser",
        "VM Network Interface Profile User",
        "9 204 1300",
    ),
    _role(
        "def00009-0000-0000-0000-def000000009",
        "UserTemplateBasedVm",
        "Template User",
        "1 1668",
    ),
    _role(
        "def00011-0000-0000-0000-def000000011",
        "InstanceCreator",
        "User Role, permission to create Instances",
        "16 1100 1300",
    ),
    _role(
        "def00012-0000-0000-0000-def000000012",
        "UserInstanceManager",
        "User Role, with permission for any operation on Instances",
        "2 3 5 7 10 12 17 18 19 21 22 502 503 1100 1101 1102 1104 1300 1664",
    ),
    _role(
        "def0000c-0000-0000-0000-def00000000c",
        "ReadOnlyAdmin",
        "Read Only Administrator Role",
        "1300",
        administrative=True,
    ),
    _role(
        "def00011-0000-0000-0000-def000000013",
        "TagManager",
        "Tag Manager",
        "1300 1301 1304",
        administrative=True,
    ),
    _role(
        "def00011-0000-0000-0000-def000000014",
        "BookmarkManager",
        "Bookmark Manager",
        "1300 1302 1304",
        administrative=True,
    ),
    _role(
        "def00011-0000-0000-0000-def000000015",
        "EventNotificationManager",
        "Event Notification Manager",
        "1300 1303 1304",
        administrative=True,
    ),
    _role(
        "def00011-0000-0000-0000-def000000016",
        "AuditLogManager",
        "Audit Log Manager",
        "1300 1304",
        administrative=True,
    ),
    _role(
        "def00013-0000-0000-0000-def000000013",
        "MacPoolAdmin",
        "MAC Pool Administrator Role, permission for manipulation with MAC pools",
        "1300 1660 1661 1662 1663",
        administrative=True,
    ),
    _role(
        "def00014-0000-0000-0000-def000000014",
        "MacPoolUser",
        "MAC Pool User Role, permission allowing using MAC pools",
        "1300 1663",
    ),
    _role(
        "def00020-0000-0000-0000-abc000000010",
        "DiskProfileUser",
        "Disk Profile User",
        "1563",
    ),
    _role(
        "def00006-0000-0000-0000-def000000011",
        "UserVmRunTimeManager",
        "User Role, with permissions for any operations on VMs except snapshot manipulation",
        "1 2 3 5 7 9 10 17 18 19 21 22 502 503 1100 1101 1102 1104 1300 1668",
    ),
    _role(
        "def00021-0000-0000-0000-def000000015",
        "UserProfileEditor",
        "Role that allow users to edit the UserProfile",
        "504",
    ),
    _role(
        "def00030-0000-0000-0000-def000000011",
        "VmImporterExporter",
        "Administrator Role, with permission to import or export Vms",
        "8 1300 1563 1668",
        administrative=True,
    ),
    _role(
        "def00017-0000-0000-0000-def000000017",
        "CpuProfileOperator",
        "Cpu Profile Operation",
        "1668",
    ),
    _role(
        "def00016-0000-0000-0000-def000000016",
        "CpuProfileCreator",
        "Cpu Profile Creation/Deletion/Updating and Operation",
        "1665 1666 1667 1668",
        administrative=True,
    ),
)

ROLES = {role.id: role for role in _ALL}
BY_NAME = {role.name: role for role in _ALL}
#: Those that make somebody the user of a VM.
USER_ROLE, USER_VM_MANAGER = BY_NAME["UserRole"], BY_NAME["UserVmManager"]
