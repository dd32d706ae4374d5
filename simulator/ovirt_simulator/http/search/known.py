"""What an engine has and the state does not hold as records: users, storage, and disks with their VMs."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from ovirt_simulator.core import storage_domains
from ovirt_simulator.core.devices import Attachment
from ovirt_simulator.core.entities import Vm, user_id
from ovirt_simulator.core.images import BLANK_TEMPLATE, DiskImage, Template
from ovirt_simulator.core.queries import Queries
from ovirt_simulator.core.storage_domain import Space, StorageDomain, space_of
from ovirt_simulator.http.search.records import AttachedDisk, User

_DIRECTORY = "internal-authz"


class Known:
    """Looks such things up; each is made once."""

    def __init__(self, queries: Queries, user_name: str) -> None:
        self._queries = queries
        self._user_name = user_name

    @cached_property
    def users(self) -> list[User]:
        """Who asks, who was taken from a directory, and who has a permission on something."""
        own = user_id(self._user_name)
        return self._known({own: self._user(own, self._user_name)} | self._taken(is_group=False))

    @cached_property
    def groups(self) -> list[User]:
        return self._known(self._taken(is_group=True), is_group=True)

    def _known(self, found: dict[str, User], *, is_group: bool = False) -> list[User]:
        for one in self._queries.permissions():
            if one.is_group == is_group and one.holder not in found:
                found[one.holder] = self._user(one.holder, one.holder, is_group=is_group)
        return list(found.values())

    def _taken(self, *, is_group: bool) -> dict[str, User]:
        return {
            one.id: User(one.id, one.name, one.directory, is_group, self._tags.get(one.id, ()))
            for one in self._queries.principals()
            if one.is_group == is_group
        }

    def _user(self, identity: str, name: str, *, is_group: bool = False) -> User:
        principal, _, profile = name.rpartition("@")
        directory = f"{profile}-authz" if principal else _DIRECTORY
        return User(identity, principal or name, directory, is_group, self._tags.get(identity, ()))

    @cached_property
    def _tags(self) -> dict[str, tuple[str, ...]]:
        return self._queries.tags_of_holders()

    def user(self, identity: str) -> User:
        """Give the user or group of this id; one that is not known is named like its id."""
        known = {each.id: each for each in (*self.users, *self.groups)}
        return known.get(identity) or self._user(identity, identity)

    @cached_property
    def _templates(self) -> dict[str, Template]:
        return {template.id: template for template in self._queries.templates()}

    def template(self, identity: str | None) -> Template | None:
        """Give a VM's template; what is made from none is made from the blank one."""
        return self._templates.get(identity or BLANK_TEMPLATE)

    @cached_property
    def storage(self) -> list[StorageDomain]:
        return self._queries.storage_domains()

    def storage_of_cluster(self, cluster_id: str) -> list[StorageDomain]:
        cluster = self._queries.cluster(cluster_id)
        wanted = None if cluster is None else cluster.data_center
        return [domain for domain in self.storage if domain.data_center == wanted]

    def storage_of_disk(self, disk: AttachedDisk) -> list[StorageDomain]:
        """Give the domains that a disk is on, of its first VM's data center or of all."""
        clusters = (vm.cluster for vm in map(self._queries.vm, disk.vms) if vm is not None)
        cluster = next(clusters, None)
        domains = self.storage if cluster is None else self.storage_of_cluster(cluster)
        return storage_domains.of_disk(disk.image or DiskImage(id=disk.id, name=disk.id), domains)

    def storage_of_vm(self, vm: Vm) -> list[StorageDomain]:
        """Give the domains that the VM's disks are on."""
        disks = (self._disks_by_id[disk.id] for disk in vm.disks)
        return list(dict.fromkeys(domain for disk in disks for domain in self.storage_of_disk(disk)))

    def space(self, domain: StorageDomain) -> Space:
        return space_of(self._sizes_by_domain[domain.id])

    @cached_property
    def _sizes_by_domain(self) -> dict[str, list[int]]:
        """Sizes of disks in bytes, by the ids of the domains that these are on."""
        found: dict[str, list[int]] = defaultdict(list)
        for image in self._queries.disks():
            for domain in self.storage_of_disk(self._disks_by_id[image.id]):
                found[domain.id].append(image.size)
        return found

    @cached_property
    def _disks_by_id(self) -> dict[str, AttachedDisk]:
        return {disk.id: disk for disk in self.disks}

    @cached_property
    def disks(self) -> list[AttachedDisk]:
        """Every disk once, attached or not."""
        attached: dict[str, tuple[Attachment, list[str]]] = {}
        for vm in self._queries.vms():
            for disk in vm.disks:
                attached.setdefault(disk.id, (disk, []))[1].append(vm.id)
        found = []
        for image in self._queries.disks():
            disk, vms = attached.get(image.id, (Attachment(id=image.id, bootable=False), []))
            found.append(AttachedDisk(disk, tuple(vms), image))
        return found
