"""The messages that the engine refuses with where NICs and vNIC profiles are concerned."""

from __future__ import annotations

from collections.abc import Sequence

from .refusals import bad_parameters, conflict
from .rejections import Rejected


def nic_name_used() -> Rejected:
    return conflict("NETWORK_INTERFACE_NAME_ALREADY_IN_USE", "Network interface name is already in use")


def mac_address_invalid() -> Rejected:
    return bad_parameters(
        "VALIDATION_VM_NETWORK_MAC_ADDRESS_INVALID",
        'MAC address must be in format "HH:HH:HH:HH:HH:HH" where H is a hexadecimal character'
        " (either a digit or A-F, case is insignificant).",
    )


def mac_address_multicast() -> Rejected:
    return bad_parameters(
        "VALIDATION_VM_NETWORK_MAC_ADDRESS_MULTICAST", "Multi-cast MAC address is not allowed."
    )


def mac_address_used(address: str, vm: str) -> Rejected:
    return conflict(
        "NETWORK_MAC_ADDRESS_IN_USE", f"MAC Address {address} is already in use by VM or snapshot: {vm}."
    )


def vnic_profile_used(vms: Sequence[str]) -> Rejected:
    if len(vms) == 1:
        return conflict(
            "ACTION_TYPE_FAILED_VNIC_PROFILE_IN_ONE_USE",
            "Cannot remove VM network interface profile. This VM network interface profile is used by VM:"
            f"  {vms[0]}.\n - Please remove it from this VM and try again.",
        )
    listed = "".join(f"\n\t{name}" for name in vms)
    return conflict(
        "ACTION_TYPE_FAILED_VNIC_PROFILE_IN_MANY_USES",
        "Cannot remove VM network interface profile. This VM network interface profile is used by VMs"
        f" ({len(vms)}):{listed}\n - Please detach VMs using this profile and try again.",
    )
