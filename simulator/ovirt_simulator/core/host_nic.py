"""The one network interface of each host, which its cluster's management network is on.

Source: the engine's VdsNetworkInterface and BackendHostNicsResource.
"""

from __future__ import annotations

from zlib import crc32

from .entities import Host, Record, stable_id
from .network_commands import MANAGEMENT_NETWORK, networks_of
from .state import State

#: What the addresses of hosts' NICs begin with; those of VMs begin otherwise.
_VENDOR = "52:54"


class HostNic(Record, frozen=True):
    id: str
    host: str
    mac: str
    #: The IP address or name that the engine reaches the host by.
    address: str
    #: The id of the management network; None where the state has none.
    network: str | None
    name: str = "eth0"


def nic_of(state: State, host: Host) -> HostNic:
    """Give a host's NIC, which is the same in every run."""
    nic_id = stable_id("host_nic", host.id)
    attached = networks_of(state, state.clusters[host.cluster])
    network = next((one for one in attached if state.networks[one].name == MANAGEMENT_NETWORK), None)
    mac = f"{_VENDOR}:{crc32(nic_id.encode()).to_bytes(4, 'big').hex(':')}"
    return HostNic(id=nic_id, host=host.id, mac=mac, address=host.address, network=network)
