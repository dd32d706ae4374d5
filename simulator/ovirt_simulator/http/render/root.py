"""The root of the API as the engine shows it."""

from __future__ import annotations

from datetime import datetime

from ovirt_simulator.core.entities import ROOT_TAG, stable_id
from ovirt_simulator.http.markup import API, element, entity, lines, text
from ovirt_simulator.http.render.moment import moment

BLANK_TEMPLATE = "00000000-0000-0000-0000-000000000000"

#: The engine that the simulator speaks as.
VERSION = ("4", "5", "6", "ovirt-engine-4.5.6-1.el9")

#: The API's root collections, and the root element of each.
COLLECTIONS = {
    "affinitylabels": "affinity_labels",
    "bookmarks": "bookmarks",
    "clusterlevels": "cluster_levels",
    "clusters": "clusters",
    "cpuprofiles": "cpu_profiles",
    "datacenters": "data_centers",
    "diskprofiles": "disk_profiles",
    "disks": "disks",
    "domains": "domains",
    "events": "events",
    "externalhostproviders": "external_host_providers",
    "externaltemplateimports": "external_template_imports",
    "externalvmimports": "external_vm_imports",
    "groups": "groups",
    "hosts": "hosts",
    "icons": "icons",
    "imagetransfers": "image_transfers",
    "instancetypes": "instance_types",
    "jobs": "jobs",
    "katelloerrata": "katello_errata",
    "macpools": "mac_pools",
    "networkfilters": "network_filters",
    "networks": "networks",
    "openstackimageproviders": "openstack_image_providers",
    "openstacknetworkproviders": "openstack_network_providers",
    "openstackvolumeproviders": "openstack_volume_providers",
    "operatingsystems": "operation_systems",
    "permissions": "permissions",
    "roles": "roles",
    "schedulingpolicies": "scheduling_policies",
    "schedulingpolicyunits": "scheduling_policy_units",
    "storageconnections": "storage_connections",
    "storagedomains": "storage_domains",
    "tags": "tags",
    "templates": "templates",
    "users": "users",
    "vmpools": "vm_pools",
    "vms": "vms",
    "vnicprofiles": "vnic_profiles",
}
_SEARCHABLE = (
    "clusters",
    "datacenters",
    "disks",
    "events",
    "externalhostproviders",
    "groups",
    "hosts",
    "instancetypes",
    "jobs",
    "networks",
    "openstackimageproviders",
    "openstacknetworkproviders",
    "openstackvolumeproviders",
    "storagedomains",
    "templates",
    "users",
    "vmpools",
    "vms",
)
#: Of which engine this is; any other has another.
_INSTANCE = stable_id("engine", "simulator")
_SPECIAL = element(
    "special_objects",
    entity("blank_template", f"{API}/templates/{BLANK_TEMPLATE}", BLANK_TEMPLATE),
    entity("root_tag", f"{API}/tags/{ROOT_TAG.id}", ROOT_TAG.id),
)


def api(now: datetime, *, summary: dict[str, tuple[int, int]] | None, user_id: str) -> str:
    """Render the root. `user_id` is who asks.

    The summary says of each type of things how many are active and how many there are; only administrators
    are shown it, and when the engine was backed up, which here it never was.
    """
    children = lines(
        _links(),
        "" if summary is None else "<engine_backup/>",
        _product(),
        _SPECIAL,
        "" if summary is None else _summary(summary),
        text("time", moment(now)),
        entity("authenticated_user", f"{API}/users/{user_id}", user_id),
        entity("effective_user", f"{API}/users/{user_id}", user_id),
    )
    return f"<api>\n{children}\n</api>"


def minimal_api() -> str:
    """Render the root of an engine of which nothing but its collections is known."""
    return f"<api>\n{_links()}\n{_product()}\n</api>"


def _links() -> str:
    return lines(
        *(f'<link href="{API}/{name}" rel="{name}"/>' for name in COLLECTIONS),
        *(f'<link href="{API}/{name}?search={{query}}" rel="{name}/search"/>' for name in _SEARCHABLE),
    )


def _product() -> str:
    major, minor, build, full = VERSION
    version = element(
        "version",
        text("build", build),
        text("full_version", full),
        text("major", major),
        text("minor", minor),
        text("revision", 0),
    )
    return element(
        "product_info",
        text("instance_id", _INSTANCE),
        text("name", "oVirt Engine"),
        text("vendor", "ovirt.org"),
        version,
    )


def _summary(counts: dict[str, tuple[int, int]]) -> str:
    items = (
        element(tag, text("active", active), text("total", total))
        for tag, (active, total) in sorted(counts.items())
    )
    return element("summary", *items)
