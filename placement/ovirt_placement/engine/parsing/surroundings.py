"""What clusters and VMs refer to and seldom changes: data centers, networks and vNIC profiles."""

from __future__ import annotations

from ovirt_placement.engine.parsing import xml
from ovirt_placement.model import DataCenter, Network, VnicProfile


def data_centers(content: bytes) -> tuple[DataCenter, ...]:
    """Read `/datacenters`."""
    return tuple(
        DataCenter(
            id=xml.identity(element),
            name=xml.text((fields := xml.children(element, "name", "local")).get("name")),
            local_storage=xml.flag(fields.get("local")),
        )
        for element in xml.elements(content, "data_center")
    )


def networks(content: bytes) -> tuple[Network, ...]:
    """Read `/networks`."""
    return tuple(
        Network(id=xml.identity(element), name=xml.text(xml.children(element, "name").get("name")))
        for element in xml.elements(content, "network")
    )


def vnic_profiles(content: bytes) -> tuple[VnicProfile, ...]:
    """Read `/vnicprofiles`."""
    return tuple(
        VnicProfile(
            id=xml.identity(element),
            name=xml.text((fields := xml.children(element, "name", "network")).get("name")),
            network=xml.reference(fields.get("network")) or "",
        )
        for element in xml.elements(content, "vnic_profile")
    )
