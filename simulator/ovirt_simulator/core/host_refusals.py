"""The messages that the engine refuses with where hosts are to come, to change or to go."""

from __future__ import annotations

from collections.abc import Iterable

from .refusals import bad_parameters, conflict
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


def host_name_used(action: str) -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_NAME_ALREADY_USED",
        f"Cannot {action} Host. The Host name is already in use, please choose a unique name and try again.",
    )


def host_address_used() -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_VDS_WITH_SAME_HOST_EXIST",
        "Cannot add Host. Host with the same address already exists.",
    )


def host_address_changed() -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_HOSTNAME_CANNOT_CHANGE",
        "Host Address can not be modified due to Security restrictions. "
        " In order to change Host Address, Host has to be reinstalled",
    )


def host_without_password() -> Rejected:
    return bad_parameters("VDS_CANNOT_INSTALL_EMPTY_PASSWORD", "Cannot install Host with empty password.")


def host_status_for_installation() -> Rejected:
    return conflict(
        "VDS_CANNOT_INSTALL_STATUS_ILLEGAL",
        "Cannot install Host. Please move Host to Maintenance mode first.",
    )


def power_management_without_agent(action: str) -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_PM_ENABLED_WITHOUT_AGENT",
        f"Cannot {action} Host. Power Management is enabled for Host but no Agent type selected.",
    )


def fence_agent_not_supported(action: str) -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_AGENT_NOT_SUPPORTED",
        f"Cannot {action} Fence Agent. Selected Power Management Agent is not supported.",
    )


def fence_agent_port() -> Rejected:
    return bad_parameters(
        "VDS_ILLEGAL_PM_AGENT_PORT_VALUE",
        "Cannot add/modify Power Management Agent."
        " Power Management Agent port value must be numeric between 1 and 65535.",
    )


def host_status_for_upgrade() -> Rejected:
    return conflict(
        "CANNOT_UPGRADE_HOST_STATUS_ILLEGAL",
        "Cannot upgrade Host. Valid Host statuses for upgrade are Up, Maintenance, and Non-Operational.",
    )


def no_updates() -> Rejected:
    return conflict(
        "NO_AVAILABLE_UPDATES_FOR_HOST",
        "Cannot upgrade Host. There are no available updates for the host.",
    )
