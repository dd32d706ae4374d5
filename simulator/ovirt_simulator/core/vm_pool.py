"""VM pools: equal VMs of one template, of which some wait for users."""

from __future__ import annotations

from .entities import Record


class VmPool(Record, frozen=True):
    id: str
    name: str
    #: The ids of both.
    cluster: str
    template: str
    description: str = ""
    comment: str = ""
    #: automatic or manual: whether who logs off gives the VM back.
    type: str = "automatic"
    stateful: bool = False
    #: How many VMs the engine keeps running, and how many one user may have.
    prestarted: int = 0
    max_user_vms: int = 1
