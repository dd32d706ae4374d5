"""What can be searched and is no record of the engine's state by itself: users, disks, networks."""

from __future__ import annotations

import msgspec

from ovirt_placement.model import Disk
from ovirt_simulator.core.images import DiskImage


class User(msgspec.Struct, frozen=True):
    """A user or group, by id; `name` is the principal, without the directory."""

    id: str
    name: str
    directory: str
    is_group: bool = False
    tags: tuple[str, ...] = ()

    @property
    def user_name(self) -> str:
        """The name as the API shows it; who is named like an id has no profile in it."""
        return f"{self.name}@{self.directory}" if self.id != self.name else f"{self.name}-authz"


class AttachedDisk(msgspec.Struct, frozen=True):
    """A disk as VMs have it, the ids of these VMs, and what the storage knows of it."""

    disk: Disk
    vms: tuple[str, ...]
    image: DiskImage | None = None

    @property
    def id(self) -> str:
        return self.disk.id


class NetworkOfCluster(msgspec.Struct, frozen=True):
    """A network as a cluster has it."""

    network: str
    cluster: str
