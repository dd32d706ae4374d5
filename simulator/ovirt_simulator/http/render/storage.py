"""Disks and storage domains as the engine shows them."""

from __future__ import annotations

from collections.abc import Iterable

from ovirt_simulator.core.images import DiskImage
from ovirt_simulator.core.storage_domain import Space, StorageDomain
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import attribute, element, path, text

#: Sub-collections, and what `follow` calls them.
DISK_LINKS = {
    "disksnapshots": "disk_snapshots",
    "permissions": "permissions",
    "statistics": "statistics",
}
STORAGE_DOMAIN_LINKS = {
    "diskprofiles": "disk_profiles",
    "disks": "disks",
    "disksnapshots": "disk_snapshots",
    "permissions": "permissions",
    "storageconnections": "storage_connections",
    "templates": "templates",
    "vms": "vms",
}

_ACTIONS = ("copy", "move", "reduce", "sparsify")
#: The same of one as its data center has it.
ATTACHED_LINKS = {"disks": "disks"}


def disk(record: DiskImage, links: Links, *, profile: str | None, domains: Iterable[StorageDomain]) -> str:
    """Render a disk, which takes as much as it can hold, with the storage domains that it is on."""
    return links.entity(
        "disk",
        record.id,
        links.actions(*_ACTIONS),
        text("name", record.name),
        text("description", record.description),
        links.links(DISK_LINKS),
        text("actual_size", record.size),
        text("alias", record.name),
        text("backup", "none"),
        text("content_type", "data"),
        text("format", record.format),
        text("propagate_errors", False),
        text("provisioned_size", record.size),
        text("shareable", record.shareable),
        text("sparse", record.sparse),
        text("status", "ok"),
        text("storage_type", "image"),
        text("total_size", record.size),
        text("wipe_after_delete", record.wipe_after_delete),
        links.reference("disk_profile", "diskprofiles", profile),
        element("storage_domains", *(_domain(domain.id) for domain in domains)),
    )


def disk_outline(disk_id: str, links: Links) -> str:
    """Render a disk as actions mention it."""
    return links.entity("disk", disk_id, links.actions(*_ACTIONS), links.links(DISK_LINKS))


def storage_domain(record: StorageDomain, links: Links, space: Space, *, attached: bool = False) -> str:
    """Render a storage domain, by itself or as its data center has it attached."""
    return links.entity(
        "storage_domain",
        record.id,
        text("name", record.name),
        text("description", record.description),
        text("comment", ""),
        links.links(ATTACHED_LINKS if attached else STORAGE_DOMAIN_LINKS),
        links.actions("activate", "deactivate") if attached else "",
        text("available", space.available),
        text("backup", False),
        text("block_size", 512),
        text("committed", space.committed),
        text("critical_space_action_blocker", 5),
        text("discard_after_delete", False),
        text("external_status", "ok"),
        text("master", record.master),
        element(
            "storage", text("address", "127.0.0.1"), text("path", f"/{record.name}"), text("type", "nfs")
        ),
        text("status", record.status) if attached else "",
        text("storage_format", "v5"),
        text("supports_discard", False),
        text("supports_discard_zeroes_data", False),
        text("type", "data"),
        text("used", space.used),
        text("warning_low_space_indicator", 10),
        text("wipe_after_delete", False),
        element("data_centers", _reference("data_center", "datacenters", record.data_center)),
    )


def _domain(identity: str) -> str:
    return _reference("storage_domain", "storagedomains", identity)


def _reference(tag: str, collection: str, identity: str) -> str:
    return f'<{tag} href="{path(collection, identity)}" id="{attribute(identity)}"/>'
