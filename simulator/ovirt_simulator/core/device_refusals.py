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


def vm_neither_up_nor_down(action: str) -> Rejected:
    return conflict(
        "NETWORK_CANNOT_ADD_INTERFACE_WHEN_VM_STATUS_NOT_UP_DOWN_LOCKED",
        f"Cannot {action} a Network Interface when VM is not Down, Up or Image-Locked.",
    )


def nic_unknown_to_system(action: str) -> Rejected:
    return bad_parameters(
        "ACTION_TYPE_FAILED_VM_INTERFACE_TYPE_IS_NOT_SUPPORTED_BY_OS",
        f"Cannot {action} Interface."
        " The network interface type is not compatible with the selected operating system.",
    )


def nic_unlike_profile(action: str) -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_VM_INTERFACE_TYPE_NOT_MATCH_PROFILE",
        f"Cannot {action} Interface. The network interface type doesn't match the profile. Virtual machine"
        " interface of type 'PCI Passthrough' should have 'Passthrough' profile and vice versa.",
    )


def nic_plugged_and_changed() -> Rejected:
    return conflict(
        "CANNOT_PERFORM_HOT_UPDATE",
        "Cannot edit Interface. Updating some of the properties is not supported while the interface is"
        " plugged into a running virtual machine. Please un-plug the interface, update the properties, and"
        " then plug it back.",
    )


def nic_plugged_and_removed() -> Rejected:
    return conflict(
        "ACTION_TYPE_FAILED_CANNOT_REMOVE_ACTIVE_DEVICE",
        "Cannot remove Interface. The VM Network Interface is plugged to a running VM.",
    )


def network_not_in_cluster() -> Rejected:
    return conflict(
        "NETWORK_NOT_EXISTS_IN_CURRENT_CLUSTER",
        "The specified Logical Network doesn't exist in the current Cluster.",
    )


def hosted_engine_without_profile() -> Rejected:
    return bad_parameters(
        "HOSTED_ENGINE_VM_CANNOT_HAVE_NIC_WITH_EMPTY_PROFILE",
        "Hosted Engine VM cannot have network interface with empty profile.",
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
