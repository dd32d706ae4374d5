"""Disks and NICs as VMs have them: what the state file says, and how the VM sees them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from ovirt_placement import model


class Attachment(model.Disk, frozen=True):
    """A disk of a VM or template; the defaults are those of the state file's."""

    #: Whether the VM sees it.
    active: bool = True
    #: As what: the REST API's DiskInterface.
    interface: str = "virtio_scsi"
    read_only: bool = False
    #: Whether space that the guest discards is given back to the storage.
    pass_discard: bool = False
    scsi_reservation: bool = False


class Nic(model.Nic, frozen=True):
    #: Whether the VM sees it.
    plugged: bool = True
    #: Whether its cable is in.
    linked: bool = True
    #: The REST API's NicInterface.
    interface: str = "virtio"


def of_state_file(vm: model.Vm) -> dict[str, Any]:
    """Give the devices of a VM of which a state file says no more than it can."""
    return {
        "disks": tuple(Attachment(**asdict(disk)) for disk in vm.disks),
        "nics": tuple(Nic(**asdict(nic)) for nic in vm.nics),
    }
