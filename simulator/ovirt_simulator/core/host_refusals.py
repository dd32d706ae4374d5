"""The messages that the engine refuses with where hosts are to come, to change or to go."""

from __future__ import annotations

from .refusals import conflict
from .rejections import Rejected


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
