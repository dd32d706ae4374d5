"""What clients say of a VM or template and nothing here depends on: kept, and shown as it was given."""

from __future__ import annotations

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
    #: With `threads`, what one of the VM's sockets has.
    cores: int = 1
    threads: int = 1
    #: Up to this the VM's memory can grow; None for four times as much as it has.
    max_memory_mb: int | None = None
    ballooning: bool = True
    console: bool = False
    soundcard: bool = True
    #: The markup inside of the element `initialization`.
    initialization: str = ""
