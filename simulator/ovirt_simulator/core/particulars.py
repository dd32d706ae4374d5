"""What clients say of a VM or template and nothing here depends on: kept, and shown as it was given."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec


class Particulars(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults are those of the template Blank."""

    comment: str = ""
    #: The REST API's VmType: server, desktop or high_performance.
    type: str = "server"
    #: The id of the operating system, as `os.type` has it.
    os: str = "other"
    #: The REST API's CpuMode, where one is set.
    cpu_mode: str | None = None
    #: How many of them one of the VM's sockets has.
    cores: int = 1
    #: Up to this the VM's memory can grow; None for four times as much as it has.
    max_memory_mb: int | None = None
    ballooning: bool = True
    console: bool = False
    soundcard: bool = True
    #: The markup inside of the element `initialization`.
    initialization: str = ""
    #: The id of the disk that is in the CD-ROM at each start; the empty word for none.
    cdrom: str = ""
    #: The REST API's GraphicsType of each console: vnc, spice.
    consoles: tuple[str, ...] = ("vnc",)
    #: The id of the storage domain with its lease; the empty word for none.
    lease: str = ""
    #: Which of pinned and user_migratable a client has made of the VM, if it is not to migrate by itself.
    immovable: str | None = None
    #: Whether it must not be removed.
    delete_protected: bool = False
    #: The markup of elements on which nothing here depends, as clients gave them, by their names.
    others: Mapping[str, str] = MappingProxyType({})
