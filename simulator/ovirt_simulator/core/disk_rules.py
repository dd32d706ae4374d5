"""What disks may be and become, by themselves and as VMs have them.

Source: the engine's AddDiskCommand, AttachDiskToVmCommand, UpdateDiskCommand and DiskVmElementValidator.
Storage here is made of files, which all can be discarded.
"""

from __future__ import annotations

from . import image_refusals
from .devices import Attachment
from .entities import Vm
from .images import DiskImage
from .state import State
from .vm_snapshot import holds_disk

_NEVER_READ_ONLY = {"ide": "IDE", "sata": "SATA"}
_CAN_DISCARD = ("virtio_scsi", "virtio", "ide", "sata")


def check_added(disk: DiskImage) -> None:
    if disk.shareable and disk.format != "raw":
        raise image_refusals.shareable_only_raw("add")


def check_changed(state: State, before: DiskImage, after: DiskImage) -> None:
    """Refuse the change of a disk that VMs may have attached."""
    owners = state.disk_owners(after.id)
    if before.shareable != after.shareable and any(_in_use(vm, after.id) for vm in owners):
        raise image_refusals.disk_changed_in_use("edit")
    if after.shareable and not before.shareable:
        if holds_disk(state.vm_snapshots.values(), after.id):
            raise image_refusals.shareable_without_snapshots()
        if after.format != "raw":
            raise image_refusals.shareable_only_raw("edit")
    if before.shareable and not after.shareable and len(owners) > 1:
        raise image_refusals.disk_is_shared()
    attached = (each for vm in owners for each in vm.disks if each.id == after.id)
    if after.size != before.size and any(each.read_only for each in attached):
        raise image_refusals.disk_read_only()
    if after.size < before.size:
        raise image_refusals.disk_shrunk()


def check_attached(disk: DiskImage, attachment: Attachment, action: str) -> None:
    """Refuse how a VM shall see a disk, if it cannot be seen so."""
    if attachment.read_only and attachment.interface in _NEVER_READ_ONLY:
        raise image_refusals.never_read_only(action, _NEVER_READ_ONLY[attachment.interface])
    if attachment.pass_discard and attachment.interface not in _CAN_DISCARD:
        raise image_refusals.discard_not_passed(action, disk.name)


def check_reattached(vm: Vm, before: Attachment, after: Attachment) -> None:
    """Refuse what a VM that is not down would have to see differently."""
    changed = any(
        getattr(before, name) != getattr(after, name) for name in ("bootable", "interface", "read_only")
    )
    if changed and _in_use(vm, before.id):
        raise image_refusals.disk_changed_in_use("edit")


def _in_use(vm: Vm, disk_id: str) -> bool:
    return vm.status != "down" and sees(vm, disk_id)


def sees(vm: Vm, disk_id: str) -> bool:
    """Say whether a disk is plugged into a VM."""
    return any(disk.active for disk in vm.disks if disk.id == disk_id)
