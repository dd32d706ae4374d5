"""What VMs and hosts stand on, as the engine shows it: data centers, networks, templates, profiles, tags."""

from __future__ import annotations

from ovirt_placement.model import Network, VnicProfile
from ovirt_simulator.core.entities import DataCenter, Tag
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import element, text
from ovirt_simulator.http.render.cluster import version

#: Sub-collections, and what `follow` calls them.
DATA_CENTER_LINKS = {
    "quotas": "quotas",
    "iscsibonds": "iscsi_bonds",
    "qoss": "qoss",
    "clusters": "clusters",
    "networks": "networks",
    "storagedomains": "storage_domains",
    "permissions": "permissions",
}
NETWORK_LINKS = {
    "networklabels": "network_labels",
    "permissions": "permissions",
    "vnicprofiles": "vnic_profiles",
}
VNIC_PROFILE_LINKS = {"permissions": "permissions"}


def data_center(record: DataCenter, links: Links) -> str:
    return links.entity(
        "data_center",
        record.id,
        text("name", record.name),
        text("description", record.description),
        text("comment", record.comment),
        links.links(DATA_CENTER_LINKS),
        text("local", record.local_storage),
        text("quota_mode", "disabled"),
        text("status", record.status),
        text("storage_format", "v5"),
        element("supported_versions", version(record.compatibility)),
        version(record.compatibility),
    )


def network(
    record: Network,
    links: Links,
    *,
    data_center: str | None,
    cluster: str | None = None,
    required: bool | None = None,
) -> str:
    """Render a network, by itself or as a cluster has it."""
    return links.entity(
        "network",
        record.id,
        text("name", record.name),
        text("description", ""),
        text("comment", ""),
        links.links(NETWORK_LINKS),
        text("mtu", 0),
        text("required", required),
        "" if cluster is None else text("status", "operational"),
        text("stp", False),
        "<usages><usage>vm</usage></usages>",
        links.reference("cluster", "clusters", cluster),
        links.reference("data_center", "datacenters", data_center),
    )


def vnic_profile(record: VnicProfile, links: Links) -> str:
    return links.entity(
        "vnic_profile",
        record.id,
        text("name", record.name),
        links.links(VNIC_PROFILE_LINKS),
        "<pass_through><mode>disabled</mode></pass_through>",
        text("port_mirroring", False),
        links.reference("network", "networks", record.network),
    )


def cpu_profile(profile_id: str, name: str, links: Links) -> str:
    return links.entity("cpu_profile", profile_id, text("name", name))


def tag(record: Tag, links: Links) -> str:
    return links.entity(
        "tag",
        record.id,
        text("name", record.name),
        text("description", record.description),
        links.reference("parent", "tags", record.parent),
    )
