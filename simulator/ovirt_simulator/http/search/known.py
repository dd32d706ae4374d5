"""What an engine has and the state does not hold as records: users, storage, and disks with their VMs."""

from __future__ import annotations

from functools import cached_property

from ovirt_placement.model import Disk
from ovirt_simulator.core.entities import DataCenter, stable_id, user_id
from ovirt_simulator.core.images import BLANK_TEMPLATE, Template
from ovirt_simulator.core.queries import Queries
from ovirt_simulator.http.search.records import AttachedDisk, StorageDomain, User

_DIRECTORY = "internal-authz"


class Known:
    """Looks such things up; each is made once."""

    def __init__(self, queries: Queries, user_name: str) -> None:
        self._queries = queries
        self._user_name = user_name

    @cached_property
    def users(self) -> list[User]:
        """Who asks, and who has a permission on a VM or a cluster."""
        own = user_id(self._user_name)
        holders = dict.fromkeys(one.holder for one in self._queries.permissions() if not one.is_group)
        return [_user(own, self._user_name), *(_user(each, each) for each in holders if each != own)]

    @cached_property
    def groups(self) -> list[User]:
        holders = dict.fromkeys(one.holder for one in self._queries.permissions() if one.is_group)
        return [_user(each, each, is_group=True) for each in holders]

    def user(self, identity: str) -> User:
        """Give the user or group of this id; one that is not known is named like its id."""
        known = {each.id: each for each in (*self.users, *self.groups)}
        return known.get(identity) or _user(identity, identity)

    @cached_property
    def _templates(self) -> dict[str, Template]:
        return {template.id: template for template in self._queries.templates()}

    def template(self, identity: str | None) -> Template | None:
        """Give a VM's template; what is made from none is made from the blank one."""
        return self._templates.get(identity or BLANK_TEMPLATE)

    @cached_property
    def storage(self) -> list[StorageDomain]:
        return [storage_domain(data_center) for data_center in self._queries.data_centers()]

    def storage_of_cluster(self, cluster_id: str) -> list[StorageDomain]:
        cluster = self._queries.cluster(cluster_id)
        wanted = None if cluster is None else cluster.data_center
        return [domain for domain in self.storage if domain.data_center == wanted]

    def storage_of_disk(self, disk: AttachedDisk) -> list[StorageDomain]:
        """Give the domain of a disk: that of its first VM's data center, or the first one."""
        for vm_id in disk.vms:
            vm = self._queries.vm(vm_id)
            if vm is not None:
                return self.storage_of_cluster(vm.cluster)
        return self.storage[:1]

    @cached_property
    def disks(self) -> list[AttachedDisk]:
        """Every disk once, attached or not."""
        attached: dict[str, tuple[Disk, list[str]]] = {}
        for vm in self._queries.vms():
            for disk in vm.disks:
                attached.setdefault(disk.id, (disk, []))[1].append(vm.id)
        found = []
        for image in self._queries.disks():
            disk, vms = attached.get(image.id, (Disk(id=image.id, bootable=False), []))
            found.append(AttachedDisk(disk, tuple(vms), image))
        return found


def storage_domain(data_center: DataCenter) -> StorageDomain:
    return StorageDomain(stable_id("storage_domain", data_center.id), "data", data_center.id)


def _user(identity: str, name: str, *, is_group: bool = False) -> User:
    principal, _, profile = name.rpartition("@")
    directory = f"{profile}-authz" if principal else _DIRECTORY
    return User(identity, principal or name, directory, is_group)
