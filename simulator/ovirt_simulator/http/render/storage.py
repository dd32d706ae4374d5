"""Disks and storage domains as the engine shows them."""

from __future__ import annotations

from ovirt_simulator.core.images import DiskImage
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import attribute, element, path, text
from ovirt_simulator.http.search.records import StorageDomain

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

_TIB = 1 << 40


def disk(record: DiskImage, links: Links, *, profile: str | None, domain: str | None) -> str:
    """Render a disk, which takes as much as it can hold; `domain` is the id of its storage domain."""
    return links.entity(
        "disk",
        record.id,
        links.actions("copy", "move", "reduce", "sparsify"),
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
        text("shareable", False),
        text("sparse", record.sparse),
        text("status", "ok"),
        text("storage_type", "image"),
        text("total_size", record.size),
        text("wipe_after_delete", False),
        links.reference("disk_profile", "diskprofiles", profile),
        "" if domain is None else element("storage_domains", _domain(domain)),
    )


def storage_domain(record: StorageDomain, links: Links) -> str:
    return links.entity(
        "storage_domain",
        record.id,
        text("name", record.name),
        text("description", ""),
        text("comment", ""),
        links.links(STORAGE_DOMAIN_LINKS),
        text("available", _TIB),
        text("backup", False),
        text("block_size", 512),
        text("committed", 0),
        text("critical_space_action_blocker", 5),
        text("discard_after_delete", False),
        text("external_status", "ok"),
        text("master", True),
        "<storage><address>127.0.0.1</address><path>/data</path><type>nfs</type></storage>",
        text("storage_format", "v5"),
        text("supports_discard", False),
        text("supports_discard_zeroes_data", False),
        text("type", "data"),
        text("used", 0),
        text("warning_low_space_indicator", 10),
        text("wipe_after_delete", False),
        element("data_centers", _reference("data_center", "datacenters", record.data_center)),
    )


def _domain(identity: str) -> str:
    return _reference("storage_domain", "storagedomains", identity)


def _reference(tag: str, collection: str, identity: str) -> str:
    return f'<{tag} href="{path(collection, identity)}" id="{attribute(identity)}"/>'
