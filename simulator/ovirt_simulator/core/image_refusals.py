"""The messages that the engine refuses with where templates and disks are concerned."""

from __future__ import annotations

from collections.abc import Iterable

from .refusals import bad_parameters, conflict
from .rejections import Rejected


def template_used(names: Iterable[str]) -> Rejected:
    listed = ", ".join(names)
    return conflict(
        "VMT_CANNOT_REMOVE_DETECTED_DERIVED_VM",
        f"Cannot delete Template. Template is being used by the following VMs: {listed}.",
    )


def template_blank() -> Rejected:
    return conflict(
        "VMT_CANNOT_REMOVE_BLANK_TEMPLATE", "Cannot remove Template. Removing Blank Template is not allowed."
    )


def template_name_used() -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_NAME_ALREADY_USED",
        "Cannot add Template."
        " The Template name is already in use, please choose a unique name and try again.",
    )


def template_of_running_vm() -> Rejected:
    return conflict(
        "VMT_CANNOT_CREATE_TEMPLATE_FROM_DOWN_VM",
        "Cannot add Template. VM is locked or still running, try again once VM is in the Down state.",
    )


def disk_attached_already() -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_NOT_SHAREABLE_DISK_ALREADY_ATTACHED",
        "Cannot attach Virtual Disk. The disk is not shareable and is already attached to a VM.",
    )


def disk_plugged(disk: str, vm: str) -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_DISK_PLUGGED_TO_NON_DOWN_VMS",
        f"Cannot remove Virtual Disk. The disk {disk} is plugged to non-Down VMs: {vm}",
    )


def disk_of_template(template: str) -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_TEMPLATE_IS_USING_DISK",
        f"Cannot remove Virtual Disk. The Template {template} has it.",
    )


def disk_shrunk() -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_REQUESTED_DISK_SIZE_IS_TOO_SMALL",
        "Cannot edit Virtual Disk. New disk size must be larger than the current disk size.",
    )
