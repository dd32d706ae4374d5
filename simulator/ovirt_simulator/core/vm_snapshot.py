"""Snapshots of VMs: what a VM was like at a moment, with the disks that it had."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from .entities import Record, Vm, stable_id
from .refusals import conflict


class VmSnapshot(Record, frozen=True):
    id: str
    description: str
    created: datetime
    #: The VM as it was.
    vm: Vm
    #: Whether it holds the VM's memory.
    memory: bool = False
    #: ok, or locked while it is made or removed.
    status: str = "ok"


def active_id(vm_id: str) -> str:
    """Give the id of what the engine calls the active snapshot: the VM as it is."""
    return stable_id("snapshot", vm_id)


def holds_disk(snapshots: Iterable[VmSnapshot], disk_id: str) -> bool:
    """Whether one of these has the disk."""
    return any(disk.id == disk_id for snapshot in snapshots for disk in snapshot.vm.disks)


def check_not_during(snapshots: Iterable[VmSnapshot], vm: Vm, action: str, kind: str = "VM") -> None:
    """Refuse what the engine does with no VM of which a snapshot is being made or removed."""
    if any(snapshot.vm.id == vm.id and snapshot.status == "locked" for snapshot in snapshots):
        raise conflict(
            "ACTION_TYPE_FAILED_VM_IS_DURING_SNAPSHOT",
            f"Cannot {action} {kind}. The VM is performing an operation on a Snapshot."
            " Please wait for the operation to finish, and try again.",
        )
