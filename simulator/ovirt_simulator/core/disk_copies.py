"""Copies of disks: those of a VM for its template, and those of a template for its VMs."""

from __future__ import annotations

from msgspec.structs import replace

from . import storage_domains
from .backend import Backend
from .devices import Attachment
from .images import DiskEdit
from .rejections import NotFound


def copied(backend: Backend, disk: Attachment, cluster_id: str, edit: DiskEdit | None = None) -> Attachment:
    """Copy a disk for what is in this cluster, at once and changed like this; give it as it is attached.

    It is on one storage domain, the first that the disk is on unless another is named.
    """
    image = backend.state.image(disk.id)
    if image is None:
        raise NotFound(disk.id)
    data_center = backend.state.clusters[cluster_id].data_center or ""
    domains = storage_domains.of_disk(image, storage_domains.of_data_center(data_center))
    plain = replace(image, id=backend.new_id(), domains=(domains[0].id,))
    copy = (edit or DiskEdit()).applied(plain)
    backend.state.put(backend.state.images, copy)
    return replace(disk, id=copy.id)
