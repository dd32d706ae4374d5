"""Who may do what: roles, users and groups, and permissions."""

from __future__ import annotations

from .entities import Record


class Role(Record, frozen=True):
    id: str
    name: str
    description: str = ""
    administrative: bool = False
    #: The ids of what it permits.
    permits: tuple[str, ...] = ()
    mutable: bool = True


class Principal(Record, frozen=True):
    """A user or group that was taken from a directory, whether it has any permission or not."""

    id: str
    name: str
    #: The authorization provider: internal-authz.
    directory: str
    is_group: bool = False


class HoldersTags(Record, frozen=True):
    """The names of the tags that a user or group bears."""

    #: The id of the user or group.
    id: str
    tags: tuple[str, ...]


class Permission(Record, frozen=True):
    """What a user or group may do with one VM, with something else and all that is in it, or with all."""

    id: str
    #: The id of the role.
    role: str
    #: The id of the user or group that has it.
    holder: str
    is_group: bool = False
    #: The id of the VM, of the cluster, or of what else it is on; without any it is on the whole system.
    vm: str | None = None
    cluster: str | None = None
    network: str | None = None
    host: str | None = None
    data_center: str | None = None
