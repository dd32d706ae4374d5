"""The root of the API as the engine shows it."""

from __future__ import annotations

from datetime import datetime

from ovirt_simulator.http.markup import API, element, entity, lines, text
from ovirt_simulator.http.render.moment import moment
from ovirt_simulator.http.render.vm import BLANK_TEMPLATE

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
    "groups": "groups",
    "hosts": "hosts",
    "icons": "icons",
    "imagetransfers": "image_transfers",
    "instancetypes": "instance_types",
    "jobs": "jobs",
    "macpools": "mac_pools",
    "networkfilters": "network_filters",
    "networks": "networks",
    "operatingsystems": "operating_systems",
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
_SEARCHABLE = ("clusters", "datacenters", "events", "hosts", "networks", "templates", "vms", "disks")
_BLANK = f"{API}/templates/{BLANK_TEMPLATE}"


def api(now: datetime, *, hosts: tuple[int, int], vms: tuple[int, int], user: str, user_id: str) -> str:
    """Render the root; the pairs are the active ones and all. `user` is who asks."""
    children = lines(
        _links(),
        _product(),
        f'<special_objects><blank_template href="{_BLANK}" id="{BLANK_TEMPLATE}"/></special_objects>',
        element("summary", _count("hosts", *hosts), _count("vms", *vms)),
        text("time", moment(now)),
        entity("authenticated_user", f"{API}/users/{user_id}", user_id, text("user_name", user)),
        entity("effective_user", f"{API}/users/{user_id}", user_id, text("user_name", user)),
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
    return element("product_info", text("name", "oVirt Engine"), text("vendor", "ovirt.org"), version)


def _count(tag: str, active: int, total: int) -> str:
    return element(tag, text("active", active), text("total", total))
