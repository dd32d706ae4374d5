"""The storage domains of data centers, of which the state file knows none: each has two."""

from __future__ import annotations

from collections.abc import Iterable

from .entities import stable_id
from .images import DiskImage
from .state import State
from .storage_domain import StorageDomain

#: The names of each data center's domains; the first one is the master.
_NAMES = ("data", "data2")


def of_data_center(data_center_id: str) -> tuple[StorageDomain, ...]:
    """Give the domains of a data center, the master first; they have the same ids in every run."""
    return tuple(_domain(data_center_id, index, name) for index, name in enumerate(_NAMES))


def all_of(state: State) -> list[StorageDomain]:
    """Give the domains of all data centers that have been given storage, as they are now."""
    return [
        state.storage_domains.get(domain.id, domain)
        for data_center in state.data_centers.values()
        if data_center.status != "uninitialized"
        for domain in of_data_center(data_center.id)
    ]


def of_disk(image: DiskImage, domains: Iterable[StorageDomain]) -> list[StorageDomain]:
    """Give those of the domains that a disk is on: where it was put, else the first."""
    known = list(domains)
    return [domain for domain in known if domain.id in image.domains] or known[:1]


def within_reach(state: State, disk_id: str) -> list[StorageDomain]:
    """Give the domains that a disk can be on: its data center's, or all while nothing has it attached."""
    template = state.template_of_disk(disk_id)
    users = state.disk_owners(disk_id) if template is None else (template.vm,)
    data_centers = [state.clusters[vm.cluster].data_center or "" for vm in users[:1]]
    return [domain for each in data_centers or state.data_centers for domain in of_data_center(each)]


def _domain(data_center_id: str, index: int, name: str) -> StorageDomain:
    kind = "storage_domain" if index == 0 else f"storage_domain/{name}"
    return StorageDomain(
        id=stable_id(kind, data_center_id), name=name, data_center=data_center_id, master=index == 0
    )
