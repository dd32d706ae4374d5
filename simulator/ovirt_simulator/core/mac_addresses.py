"""The MAC addresses of NICs: what clients gave them, else what follows from their ids.

Source: the engine's VmInterfaceCommand and MacPool.
"""

from __future__ import annotations

import re
from zlib import crc32

from .device_refusals import mac_address_invalid, mac_address_multicast, mac_address_used
from .entities import Vm
from .mac_pool import DEFAULT_POOL, VENDOR
from .state import State

_FORM = re.compile(r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}")


def mac_address(state: State, nic_id: str) -> str:
    """Give the address of a NIC; the one that it has of the pool is the same in every run."""
    if nic_id in state.macs:
        return state.macs[nic_id]
    digits = f"{crc32(nic_id.encode()):08x}"
    return ":".join([VENDOR, *(digits[place : place + 2] for place in range(0, 8, 2))])


def give(state: State, vm: Vm, nic_id: str, address: str) -> None:
    """Give a NIC of this VM an address. Raises `Rejected` for one that is none, or that another NIC has."""
    if address == mac_address(state, nic_id):
        return
    if not _FORM.fullmatch(address) or set(address) == {"0", ":"}:
        raise mac_address_invalid()
    if int(address[:2], 16) % 2:
        raise mac_address_multicast()
    pool = state.mac_pools[state.clusters[vm.cluster].mac_pool or DEFAULT_POOL.id]
    users = (
        other.name
        for other in state.vms.values()
        for nic in other.nics
        if nic.id != nic_id and mac_address(state, nic.id).lower() == address.lower()
    )
    user = next(users, None)
    if user is not None and not pool.allow_duplicates:
        raise mac_address_used(address, user)
    state.macs[nic_id] = address
