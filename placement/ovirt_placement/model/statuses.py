"""The statuses of hosts and VMs, in the words of the REST API."""

from __future__ import annotations

#: The words of the REST API.
HOST_STATUSES = frozenset(
    [
        "unassigned",
        "down",
        "maintenance",
        "up",
        "non_responsive",
        "error",
        "installing",
        "install_failed",
        "reboot",
        "preparing_for_maintenance",
        "non_operational",
        "pending_approval",
        "initializing",
        "connecting",
        "installing_os",
        "kdumping",
    ]
)
#: A VM in one of these is on no host.
RESTING_STATUSES = frozenset({"down", "suspended", "image_locked"})
#: A VM in one of these is on a host.
RUNNING_STATUSES = frozenset(
    [
        "up",
        "powering_up",
        "paused",
        "migrating",
        "not_responding",
        "reboot_in_progress",
        "saving_state",
        "restoring_state",
        "powering_down",
    ]
)
VM_STATUSES = RESTING_STATUSES | RUNNING_STATUSES | {"unassigned", "unknown", "wait_for_launch"}
