"""Who may do what: roles, users and groups, and permissions."""

from __future__ import annotations

from .entities import Record


class Role(Record, frozen=True):
    id: str
    name: str
    description: str = ""
    administrative: bool = False
    #: The names of what it permits.
    permits: tuple[str, ...] = ()


class Permission(Record, frozen=True):
    """What a user or group may do with one VM, with a cluster and all that is in it, or with all."""

    id: str
    #: The id of the role.
    role: str
    #: The id of the user or group that has it.
    holder: str
    is_group: bool = False
    #: The id of the VM or cluster that it is on; without either it is on the whole system.
    vm: str | None = None
    cluster: str | None = None
