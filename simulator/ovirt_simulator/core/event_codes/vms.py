"""VMs: started, stopped, migrated and changed."""

from __future__ import annotations

from .event_type import EventType


class VmEvents:
    USER_ATTACH_DISK_TO_VM = EventType(
        2016, "normal", "Disk {disk} was successfully attached to VM {vm} by {user}."
    )
    USER_DETACH_DISK_FROM_VM = EventType(
        2018, "normal", "Disk {disk} was successfully detached from VM {vm} by {user}."
    )
    USER_RUN_VM = EventType(32, "normal", "VM {vm} started on Host {host}")
    USER_STOP_VM = EventType(33, "normal", "VM {vm} powered off by {user} (Host: {host}).")
    USER_ADD_VM = EventType(34, "normal", "VM {vm} was created by {user}.")
    USER_UPDATE_VM = EventType(35, "normal", "VM {vm} configuration was updated by {user}.")
    USER_FAILED_RUN_VM = EventType(54, "error", "Failed to run VM {vm}{error} (User: {user}).")
    VM_DOWN = EventType(61, "normal", "VM {vm} is down. {exit}")
    VM_MIGRATION_START = EventType(
        62,
        "normal",
        "Migration started (VM: {vm}, Source: {host}, Destination: {target}, User: {user}). ",
    )
    VM_MIGRATION_DONE = EventType(
        63,
        "normal",
        (
            "Migration completed (VM: {vm}, Source: {source}, Destination: {host}, Duration: {seconds}"
            " seconds, Total: {seconds} seconds, Actual downtime: (N/A))"
        ),
    )
    VM_MIGRATION_ABORT = EventType(
        64,
        "error",
        ("Migration failed: {error} (VM: {vm}, Source: {host})."),
    )
    VM_MIGRATION_FAILED = EventType(65, "error", "Migration failed{error} (VM: {vm}, Source: {host}).")
    VM_MIGRATION_START_SYSTEM_INITIATED = EventType(
        67,
        "normal",
        "Migration initiated by system (VM: {vm}, Source: {host}, Destination: {target}, Reason: {reason}).",
    )
    USER_INITIATED_SHUTDOWN_VM = EventType(
        73, "normal", "VM shutdown initiated by {user} on VM {vm} (Host: {host})."
    )
    USER_STOP_SUSPENDED_VM = EventType(
        111, "normal", "Suspended VM {vm} has had its save state cleared by {user}."
    )
    USER_REMOVE_VM_FINISHED = EventType(113, "normal", "VM {vm} was successfully removed by {user}.")
    VM_DOWN_ERROR = EventType(119, "error", "VM {vm} is down with error. Exit message: {exit}.")
    VM_MIGRATION_TO_SERVER_FAILED = EventType(
        120,
        "error",
        "Migration failed{error} (VM: {vm}, Source: {host}, Destination: {target}).",
    )
    VM_MIGRATION_TRYING_RERUN = EventType(
        128,
        "warning",
        "Failed to migrate VM {vm} to Host {target}{error}. Trying to migrate to another Host.",
    )
    VM_MIGRATION_FAILED_DURING_MOVE_TO_MAINTENANCE = EventType(
        140,
        "error",
        (
            "Migration failed{error} while Host is in 'preparing for maintenance' state.\n"
            "  Consider manual intervention: stopping/migrating Vms as Host's state will not\n"
            "  turn to maintenance while VMs are still running on it."
            "(VM: {vm}, Source: {host}, Destination: {target})."
        ),
    )
    VM_SET_TO_UNKNOWN_STATUS = EventType(142, "warning", "VM {vm} was set to the Unknown status.")
    VM_WAS_SET_DOWN_DUE_TO_HOST_REBOOT_OR_MANUAL_FENCE = EventType(
        143,
        "normal",
        "Vm {vm} was shut down due to {host} host reboot or manual fence",
    )
    USER_INITIATED_RUN_VM = EventType(150, "normal", "Starting VM {vm} was initiated by {user}.")
    USER_STARTED_VM = EventType(153, "normal", "VM {vm} was started by {user} (Host: {host}).")
    USER_REBOOT_VM = EventType(157, "normal", "VM {vm} is rebooting. Rebooted by: {user}")
    VM_CANCEL_MIGRATION = EventType(
        161,
        "normal",
        "Migration cancelled (VM: {vm}, Source: {host}, User: {user}).",
    )
    VM_CANCEL_MIGRATION_FAILED = EventType(162, "error", "Failed to cancel migration for VM: {vm}")
    VM_STATUS_RESTORED = EventType(163, "normal", "VM {vm} status was restored to {status}.")
    VM_MIGRATION_NO_VDS_TO_MIGRATE_TO = EventType(
        166,
        "warning",
        "No available host was found to migrate VM {vm} to.",
    )
    USER_RESET_VM = EventType(221, "normal", "VM {vm} is resetting. Reset by: {user}")
    VM_ALREADY_IN_REQUESTED_STATUS = EventType(
        254,
        "normal",
        "VM {vm} is already {status}, {action} was skipped. User: {user}.",
    )
    USER_SUSPEND_VM = EventType(
        501, "normal", "Suspending VM {vm} was initiated by User {user} (Host: {host})."
    )
    USER_SUSPEND_VM_OK = EventType(503, "normal", "VM {vm} on Host {host} is suspended.")
    USER_VDS_MAINTENANCE_MIGRATION_FAILED = EventType(
        602,
        "warning",
        (
            "Host {host} cannot change into maintenance mode - not all Vms have been migrated"
            " successfully. Consider manual intervention: stopping/migrating Vms running on this host."
            " (User: {user})."
        ),
    )
    HA_VM_FAILED = EventType(
        9602,
        "error",
        "Highly Available VM {vm} failed. It will be restarted automatically.",
    )
