"""Hosts: added, activated, in maintenance, lost and fenced."""

from __future__ import annotations

from .event_type import EventType


class HostEvents:
    VDS_FAILURE = EventType(12, "error", "Host {host} is non responsive.")
    VDS_DETECTED = EventType(13, "normal", "Status of host {host} was set to {status}.")
    VDS_RECOVER = EventType(14, "normal", "Host {host} is rebooting.")
    VDS_MAINTENANCE = EventType(15, "normal", "Host {host} was switched to Maintenance Mode.")
    VDS_ACTIVATE = EventType(16, "normal", "Activation of host {host} initiated by {user}.")
    VDS_MAINTENANCE_FAILED = EventType(17, "error", "Failed to switch Host {host} to Maintenance mode.")
    USER_ADD_VDS = EventType(42, "normal", "Host {host} was added by {user}.")
    USER_UPDATE_VDS = EventType(43, "normal", "Host {host} configuration was updated by {user}.")
    USER_REMOVE_VDS = EventType(44, "normal", "Host {host} was removed by {user}.")
    VDS_INITIATED_RUN_VM = EventType(506, "normal", "Trying to restart VM {vm} on Host {host}")
    VDS_INITIATED_RUN_VM_FAILED = EventType(507, "error", "Failed to restart VM {vm} on Host {host}")
    SYSTEM_SSH_HOST_RESTART = EventType(197, "normal", "Host {host} was restarted using SSH by the engine.")
    USER_VDS_MAINTENANCE = EventType(
        600,
        "normal",
        "Host {host} was switched to Maintenance mode by {user} (Reason: {reason}).",
    )
    USER_VDS_MAINTENANCE_WITHOUT_REASON = EventType(
        620,
        "normal",
        "Host {host} was switched to Maintenance mode by {user}.",
    )
    HOST_UPGRADE_STARTED = EventType(840, "normal", "Host {host} upgrade was started (User: {user}).")
    HOST_UPGRADE_FAILED = EventType(841, "error", "Failed to upgrade Host {host} (User: {user}). <UNKNOWN>.")
    HOST_UPGRADE_FINISHED = EventType(842, "normal", "Host {host} upgrade was completed successfully.")
    HOST_UPDATES_ARE_AVAILABLE_WITH_PACKAGES = EventType(
        843,
        "normal",
        "Host {host} has available updates: {packages}.",
        86_400,
    )
    HOST_AVAILABLE_UPDATES_STARTED = EventType(
        884,
        "normal",
        "Started to check for available updates on host {host}.",
    )
    HOST_AVAILABLE_UPDATES_FINISHED = EventType(
        885,
        "normal",
        ("Check for available updates on host {host} was completed successfully with message '{message}'."),
    )
    HOST_UPGRADE_FINISHED_AND_WILL_BE_REBOOTED = EventType(
        888,
        "normal",
        "Upgrade was successful and host {host} will be rebooted.",
    )
