"""The messages that the engine refuses with where hosts are to change or to go."""

from __future__ import annotations

from collections.abc import Iterable

from .refusals import conflict
from .rejections import Rejected


def host_operational() -> Rejected:
    return conflict(
        "VDS_STATUS_NOT_VALID_FOR_UPDATE",
        "Cannot edit Host. Host parameters cannot be modified while Host is operational.\n"
        "Please switch Host to Maintenance mode first.",
    )


def host_operational_for_removal() -> Rejected:
    return conflict(
        "VDS_CANNOT_REMOVE_VDS_STATUS_ILLEGAL",
        "Cannot remove Host. Host is operational. Please switch Host to Maintenance mode first.",
    )


def host_has_vms() -> Rejected:
    return conflict(
        "VDS_CANNOT_REMOVE_VDS_DETECTED_RUNNING_VM",
        "Cannot remove Host. One or more VMs are still running on this Host.",
    )


def host_has_pinned_vms(names: Iterable[str]) -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_DETECTED_PINNED_VMS",
        "Cannot remove Host. The following VMs are set to run specifically only on this Host: "
        + ",".join(names)
        + ".",
    )


def cluster_name_used() -> Rejected:
    return conflict(
        "CLUSTER_CANNOT_DO_ACTION_NAME_IN_USE", "Cannot add Cluster. Cluster name is already in use."
    )
