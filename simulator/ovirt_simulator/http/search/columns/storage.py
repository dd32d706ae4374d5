"""What is known of disks and storage domains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ovirt_simulator.core.images import DiskImage
from ovirt_simulator.core.storage_domain import StorageDomain
from ovirt_simulator.http.search.columns.column import Columns, always, name, nothing, word
from ovirt_simulator.http.search.columns.lookup import Lookup
from ovirt_simulator.http.search.records import AttachedDisk


def _image(disk: AttachedDisk) -> DiskImage:
    return disk.image or DiskImage(id=disk.id, name=disk.id)


def disk(state: Lookup) -> Columns:
    columns: dict[str, Callable[[AttachedDisk], Any]] = {
        "ID": lambda disk: disk.id,
        "ALIAS": lambda disk: _image(disk).name,
        "NAME": lambda disk: _image(disk).name,
        "DESCRIPTION": lambda disk: _image(disk).description,
        "PROVISIONED_SIZE": lambda disk: _image(disk).size,
        "SIZE": lambda disk: _image(disk).size,
        "ACTUAL_SIZE": lambda disk: _image(disk).size,
        "ALLOCATION_POLICY": lambda disk: "sparse" if _image(disk).sparse else "preallocated",
        "STATUS": always("ok"),
        "DISK_TYPE": always("image"),
        "DISK_CONTENT_TYPE": always("data"),
        # The engine has the names of all quotas of a disk in one text.
        "QUOTA": nothing,
        "SHAREABLE": lambda disk: len(disk.vms) > 1,
        "WIPE_AFTER_DELETE": always(False),
        "NUMBER_OF_VMS": lambda disk: len(disk.vms),
        "VM_NAMES": lambda disk: ",".join(filter(None, map(state.vm_name, disk.vms))) or None,
    }
    return columns


def storage(state: Lookup) -> Columns:
    columns: dict[str, Callable[[StorageDomain], Any]] = {
        "NAME": name,
        "DESCRIPTION": lambda domain: domain.description,
        "COMMENT": nothing,
        "STATUS": lambda domain: word(domain.status),
        "SHARED_STATUS": lambda domain: "active" if domain.status == "active" else "inactive",
        "EXTERNAL_STATUS": always("ok"),
        "DATACENTER": lambda domain: state.data_center_name(domain.data_center),
        "TYPE": always("nfs"),
        "WIPE_AFTER_DELETE": always(False),
        "DISCARD_AFTER_DELETE": always(False),
        "BACKUP": always(False),
    }
    return columns
