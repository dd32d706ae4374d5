"""The one MAC pool of every cluster, and the addresses that NICs have of it; the state knows neither."""

from __future__ import annotations

from zlib import crc32

from ovirt_simulator.core.entities import stable_id

MAC_POOL = stable_id("mac_pool", "Default")
_VENDOR = "56:6f"
FIRST, LAST = f"{_VENDOR}:00:00:00:00", f"{_VENDOR}:ff:ff:ff:ff"


def mac_address(nic_id: str) -> str:
    """Give the address of a NIC: the same in every run."""
    digits = f"{crc32(nic_id.encode()):08x}"
    return ":".join([_VENDOR, *(digits[place : place + 2] for place in range(0, 8, 2))])
