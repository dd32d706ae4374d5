"""The messages that the engine refuses with where templates and disks are concerned."""

from __future__ import annotations

from collections.abc import Iterable

from .refusals import bad_parameters, conflict
from .rejections import Message, Rejected


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


def template_not_found() -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_TEMPLATE_DOES_NOT_EXIST",
        "Cannot add Template. The relevant Template doesn't exist.",
    )


def template_no_base() -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_TEMPLATE_VERSION_CANNOT_BE_BASE_TEMPLATE",
        "Cannot add Template. Only the first template version can be selected as the base template.",
    )


def template_blank_has_no_versions() -> Rejected:
    return Rejected(
        Message("BLANK_TEMPLATE_CANT_HAVE_SUBTEMPLATES", "Blank template can't have sub-templates.")
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
        f"Cannot copy Virtual Disk. The disk {disk} is plugged to non-Down VMs: {vm}",
    )


def disk_changed_in_use(action: str) -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_VM_IS_NOT_DOWN",
        f"Cannot {action} Virtual Disk. At least one of the VMs is not down.",
    )


def disk_of_template() -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_CANT_DELETE_TEMPLATE_DISK_WITHOUT_SPECIFYING_DOMAIN",
        "Cannot remove Virtual Disk."
        " A storage domain must be specified when deleting one of a template's disk's copies.",
    )


def disk_of_template_moved(disk: str) -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_DISK_IS_NOT_VM_DISK",
        f"Cannot move Virtual Disk. The following disk(s) are not attached to any VM: {disk}.",
    )


def disk_moved_nowhere() -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_SOURCE_AND_TARGET_SAME",
        "Cannot move Virtual Disk. The source and target storage domains are the same.",
    )


def disk_of_template_copied_already() -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_IMAGE_ALREADY_EXISTS",
        "Cannot copy Virtual Disk. One of the Template Images already exists.",
    )


def storage_domain_unknown(action: str) -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_STORAGE_DOMAIN_NOT_EXIST",
        f"Cannot {action} Virtual Disk. Storage Domain doesn't exist.",
    )


def disk_in_snapshot() -> Rejected:
    return conflict(
        "ERROR_CANNOT_DETACH_DISK_WITH_SNAPSHOT",
        "Cannot detach Virtual Disk. The disk is already configured in a snapshot."
        " In order to detach it, remove the disk's snapshots.",
    )


def vm_with_snapshots() -> Rejected:
    return conflict(
        "VM_CANNOT_REMOVE_WITH_DETACH_DISKS_SNAPSHOTS_EXIST",
        "Cannot remove VM with detaching disks, snapshots exist.",
    )


def shareable_only_raw(action: str) -> Rejected:
    return conflict(
        "SHAREABLE_DISK_IS_NOT_SUPPORTED_BY_VOLUME_FORMAT",
        f"Cannot {action} Virtual Disk. Disk's volume format is not supported for shareable disk.",
    )


def shareable_without_snapshots() -> Rejected:
    return conflict(
        "SHAREABLE_DISK_IS_NOT_SUPPORTED_FOR_DISK",
        "Cannot edit Virtual Disk. Disk cannot be shareable if it depends on a snapshot."
        " In order to share it, remove the disk's snapshots.",
    )


def disk_is_shared() -> Rejected:
    return conflict(
        "DISK_IS_ALREADY_SHARED_BETWEEN_VMS",
        "Cannot edit Virtual Disk. Disk is shared between VMs and cannot be made unshareable. Detach the disk"
        " from the rest of the VMs it is attached to and then update the disk to be unshareable.",
    )


def disk_read_only() -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_CANNOT_RESIZE_READ_ONLY_DISK",
        "Cannot edit Virtual Disk. Read-only disk cannot be resized.",
    )


def never_read_only(action: str, interface: str) -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_INTERFACE_DOES_NOT_SUPPORT_READ_ONLY_ATTR",
        f"Cannot {action} Virtual Disk. {interface} disks can't be read-only.",
    )


def discard_not_passed(action: str, disk: str) -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_PASS_DISCARD_NOT_SUPPORTED_BY_DISK_INTERFACE",
        f"Cannot {action} Virtual Disk. Enable discard for {disk} is supported only by VirtIO-SCSI and IDE"
        " disk interfaces.",
    )


def disk_shrunk() -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_REQUESTED_DISK_SIZE_IS_TOO_SMALL",
        "Cannot edit Virtual Disk. New disk size must be larger than the current disk size.",
    )
