"""A network interface of a host as the engine shows it.

Source: the engine's HostNicMapper and BackendHostNicsResource.
"""

from __future__ import annotations

from ipaddress import ip_address

from ovirt_simulator.core.host_nic import HostNic
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import element, text

#: Sub-collections, and what `follow` calls them.
LINKS = {
    "linklayerdiscoveryprotocolelements": "link_layer_discovery_protocol_elements",
    "networklabels": "network_labels",
    "networkattachments": "network_attachments",
    "statistics": "statistics",
}


def host_nic(record: HostNic, links: Links) -> str:
    """Render a NIC; a network for VMs is on it by a bridge, and just as it was set up."""
    attached = record.network is not None
    return links.entity(
        "host_nic",
        record.id,
        "<actions/>",
        text("name", record.name),
        links.links(LINKS),
        text("bridged", attached),
        text("custom_configuration", False) if attached else "",
        _ip(record.address),
        element("mac", text("address", record.mac)),
        text("mtu", 1500),
        text("status", "up"),
        links.reference("host", "hosts", record.host),
        links.reference("network", "networks", record.network),
    )


def _ip(address: str) -> str:
    """Render the address of the host, unless it is a name."""
    try:
        version = ip_address(address).version
    except ValueError:
        return ""
    return element("ip" if version == 4 else "ipv6", text("address", address), text("version", f"v{version}"))
