"""Disks, snapshots, templates, pools and storage domains."""

from __future__ import annotations

from .event_type import EventType


class StorageEvents:
    USER_ADD_VM_TEMPLATE_SUCCESS = EventType(29, "normal", "Template {template} was created successfully.")
    USER_CHANGE_DISK_VM = EventType(38, "normal", "CD {disk} was inserted to VM {vm} by {user}.")
    USER_CREATE_SNAPSHOT = EventType(
        45,
        "normal",
        "Snapshot '{snapshot}' creation for VM '{vm}' was initiated by {user}.",
    )
    USER_TRY_BACK_TO_SNAPSHOT = EventType(
        46,
        "normal",
        "Snapshot-Preview {snapshot} for VM {vm} was initiated by {user}.",
    )
    USER_ADD_VM_TEMPLATE = EventType(
        48,
        "normal",
        "Creation of Template {template} from VM {vm} was initiated by {user}.",
    )
    USER_REMOVE_VM_TEMPLATE = EventType(
        50, "normal", "Removal of Template {template} was initiated by {user}."
    )
    USER_ADD_VM_TEMPLATE_FINISHED_SUCCESS = EventType(
        51,
        "normal",
        "Creation of Template {template} from VM {vm} has been completed.",
    )
    USER_CREATE_SNAPSHOT_FINISHED_SUCCESS = EventType(
        68,
        "normal",
        "Snapshot '{snapshot}' creation for VM '{vm}' has been completed.",
    )
    USER_TRY_BACK_TO_SNAPSHOT_FINISH_SUCCESS = EventType(
        71,
        "normal",
        "Snapshot-Preview {snapshot} for VM {vm} has been completed.",
    )
    USER_UPDATE_DISK = EventType(86, "normal", "Disk {disk} was updated by {user}.")
    USER_UPDATE_VM_DISK = EventType(88, "normal", "VM {vm} {disk} disk was updated by {user}.")
    USER_COMMIT_RESTORE_FROM_SNAPSHOT_START = EventType(
        94,
        "normal",
        "Committing a Snapshot-Preview for VM {vm} was initialized by {user}.",
    )
    USER_COMMIT_RESTORE_FROM_SNAPSHOT_FINISH_SUCCESS = EventType(
        95,
        "normal",
        "Committing a Snapshot-Preview for VM {vm} has been completed.",
    )
    USER_REMOVE_VM_TEMPLATE_FINISHED = EventType(
        251,
        "normal",
        "Removal of Template {template} has been completed.",
    )
    USER_ADD_VM_POOL_WITH_VMS = EventType(
        302,
        "normal",
        "VM Pool {pool} (containing {count} VMs) was created by {user}.",
    )
    USER_REMOVE_VM_POOL = EventType(304, "normal", "VM Pool {pool} was removed by {user}.")
    USER_REMOVE_VM_FROM_POOL = EventType(308, "normal", "VM {vm} was removed from VM Pool {pool} by {user}.")
    USER_UPDATE_VM_POOL = EventType(314, "normal", "VM Pool {pool} configuration was updated by {user}.")
    USER_REMOVE_SNAPSHOT = EventType(
        342,
        "normal",
        "Snapshot '{snapshot}' deletion for VM '{vm}' was initiated by {user}.",
    )
    USER_REMOVE_SNAPSHOT_FINISHED_SUCCESS = EventType(
        356,
        "normal",
        "Snapshot '{snapshot}' deletion for VM '{vm}' has been completed.",
    )
    USER_EJECT_VM_DISK = EventType(528, "normal", "CD was ejected from VM {vm} by {user}.")
    USER_UPDATE_STORAGE_DOMAIN = EventType(958, "normal", "Storage Domain {domain} was updated by {user}.")
    USER_ACTIVATED_STORAGE_DOMAIN = EventType(
        966,
        "normal",
        "Storage Domain {domain} (Data Center {data_center}) was activated by {user}",
    )
    USER_DEACTIVATED_STORAGE_DOMAIN = EventType(
        968,
        "normal",
        (
            "Storage Domain {domain} (Data Center {data_center}) was deactivated and has moved to"
            " 'Preparing for maintenance' until it will no longer be accessed by any Host of the Data Center."
        ),
    )
    USER_COPIED_DISK = EventType(2004, "normal", "User {user} is copying disk {disk} to domain {domain}.")
    USER_COPIED_DISK_FINISHED_SUCCESS = EventType(
        2006,
        "normal",
        "User {user} finished copying disk {disk} to domain {domain}.",
    )
    USER_MOVED_DISK = EventType(2008, "normal", "User {user} moving disk {disk} to domain {domain}.")
    USER_MOVED_DISK_FINISHED_SUCCESS = EventType(
        2010,
        "normal",
        "User {user} finished moving disk {disk} to domain {domain}.",
    )
    USER_FINISHED_REMOVE_DISK = EventType(
        2014,
        "normal",
        "Disk {disk} was successfully removed from domain {domain} (User {user}).",
    )
    USER_ATTACH_DISK_TO_VM = EventType(
        2016,
        "normal",
        "Disk {disk} was successfully attached to VM {vm} by {user}.",
    )
    USER_DETACH_DISK_FROM_VM = EventType(
        2018,
        "normal",
        "Disk {disk} was successfully detached from VM {vm} by {user}.",
    )
    USER_ADD_DISK_FINISHED_SUCCESS = EventType(2021, "normal", "The disk '{disk}' was successfully added.")
