"""What hangs on a VM and costs the engine look-ups of its own: disks, network interfaces, the owner."""

from __future__ import annotations

from enum import Flag, auto


class Detail(Flag):
    """What to read of VMs besides themselves."""

    DISKS = auto()
    NICS = auto()
    OWNER = auto()  # and the tags, which may name one


NO_DETAILS = Detail(0)
ALL_DETAILS = ~NO_DETAILS

_FOLLOWED = {
    Detail.DISKS: ("disk_attachments.disk",),
    Detail.NICS: ("nics",),
    Detail.OWNER: ("tags", "permissions"),
}


def followed(details: Detail) -> tuple[str, ...]:
    """Name what the engine must follow from VMs for these."""
    return tuple(name for detail, names in _FOLLOWED.items() if detail in details for name in names)
