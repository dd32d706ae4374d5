"""Copies of disks: those of a VM for its template, and those of a template for its VMs."""

from __future__ import annotations

from msgspec.structs import replace

from ovirt_placement.model import Disk

from .backend import Backend
from .images import DiskEdit
from .rejections import NotFound


def copied(backend: Backend, disk: Disk, edit: DiskEdit | None = None) -> Disk:
    """Copy a disk, at once and changed like this, and give the copy as what takes it has it attached."""
    image = backend.state.image(disk.id)
    if image is None:
        raise NotFound(disk.id)
    copy = (edit or DiskEdit()).applied(replace(image, id=backend.new_id()))
    backend.state.put(backend.state.images, copy)
    return replace(disk, id=copy.id)
