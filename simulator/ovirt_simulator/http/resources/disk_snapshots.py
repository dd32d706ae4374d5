"""What a disk is made of: an image for each snapshot of its VM that holds it, and the present one."""

from __future__ import annotations

import msgspec

from ovirt_simulator.core.entities import stable_id
from ovirt_simulator.core.images import DiskImage
from ovirt_simulator.core.vm_snapshot import active_id
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import attribute, text
from ovirt_simulator.http.resources.find import images, present


class DiskSnapshot(msgspec.Struct, frozen=True):
    """One image of a disk."""

    id: str
    #: The id of the snapshot of the VM, and what it is called.
    snapshot: str
    description: str
    disk: DiskImage
    #: The id of the image below it.
    parent: str | None = None


def list_of_disk(call: Call, disk_id: str) -> list[str]:
    """Give those of the snapshots, and with `include_active` also the one that is written to."""
    return [
        _render(one, call.links("disks", disk_id, "disksnapshots", one.id))
        for one in _chain(call, present(images(call).get(disk_id)))
    ]


def get_of_disk(call: Call, disk_id: str, image_id: str) -> str:
    found = _chain(call, present(images(call).get(disk_id)))
    one = present(next((one for one in found if one.id == image_id), None))
    return _render(one, call.links("disks", disk_id, "disksnapshots", image_id))


def _chain(call: Call, disk: DiskImage) -> list[DiskSnapshot]:
    """Give a disk's images, the oldest first; a disk that no VM has is one image, of no snapshot."""
    owner = next((vm for vm in call.queries.vms() if any(each.id == disk.id for each in vm.disks)), None)
    of_vm = () if owner is None else call.queries.vm_snapshots(owner.id)
    holders = [(one.id, one.description) for one in of_vm if any(each.id == disk.id for each in one.vm.disks)]
    if call.flag("include_active"):
        holders.append((active_id(disk.id if owner is None else owner.id), "Active VM"))
    ids = [stable_id("image", f"{snapshot}/{disk.id}") for snapshot, _ in holders]
    return [
        DiskSnapshot(id=identity, snapshot=snapshot, description=description, disk=disk, parent=parent)
        for identity, (snapshot, description), parent in zip(ids, holders, [None, *ids], strict=False)
    ]


def _render(one: DiskSnapshot, links: Links) -> str:
    return links.entity(
        "disk_snapshot",
        one.id,
        text("description", one.description),
        text("actual_size", one.disk.size),
        text("alias", one.disk.name),
        text("content_type", "data"),
        text("format", one.disk.format),
        text("image_id", one.id),
        text("provisioned_size", one.disk.size),
        text("sparse", one.disk.sparse),
        text("status", "ok"),
        text("storage_type", "image"),
        text("total_size", one.disk.size),
        links.reference("disk", "disks", one.disk.id),
        "" if one.parent is None else f'<parent id="{one.parent}"/>',
        f'<snapshot id="{attribute(one.snapshot)}"/>',
    )
