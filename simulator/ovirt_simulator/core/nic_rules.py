"""What NICs may be and become, while their VM is down and while it runs.

Source: the engine's VmNicValidator, UpdateVmInterfaceCommand, RemoveVmInterfaceCommand and osinfo.
"""

from __future__ import annotations

from . import compatibility, device_refusals
from .cluster_cpu import cpu_architecture
from .devices import Nic
from .entities import Vm
from .network_commands import networks_of
from .state import State

#: What the engine calls each NicInterface in events.
DESCRIPTIONS = {
    "rtl8139_virtio": "Dual mode rtl8139, VirtIO",
    "rtl8139": "rtl8139",
    "e1000": "e1000",
    "virtio": "VirtIO",
    "spapr_vlan": "sPAPR VLAN",
    "pci_passthrough": "PCI Passthrough",
    "e1000e": "e1000e",
}
_OF_X86 = frozenset({"rtl8139", "e1000", "virtio", "pci_passthrough"})
_OF_OTHERS = {
    "ppc64": frozenset({"virtio", "spapr_vlan", "pci_passthrough"}),
    "s390x": frozenset({"virtio"}),
}
_KNOWS_E1000E = (4, 7)
_CHANGEABLE = ("up", "down", "image_locked")


def check_status(vm: Vm, action: str) -> None:
    if vm.status not in _CHANGEABLE:
        raise device_refusals.vm_neither_up_nor_down(action)


def check_nic(state: State, vm: Vm, nic: Nic, action: str) -> None:
    """Refuse a NIC of a kind or with a vNIC profile that its VM cannot have."""
    if nic.interface not in _interfaces(state, vm):
        raise device_refusals.nic_unknown_to_system(action)
    profile = state.vnic_profiles.get(nic.vnic_profile or "")
    if profile is not None and profile.network not in networks_of(state, state.clusters[vm.cluster]):
        raise device_refusals.network_not_in_cluster()
    if nic.interface == "pci_passthrough":  # which no vNIC profile here is
        raise device_refusals.nic_unlike_profile(action)
    if vm.hosted_engine and nic.vnic_profile is None:
        raise device_refusals.hosted_engine_without_profile()


def check_hot_change(vm: Vm, before: Nic, after: Nic, *, other_mac: bool) -> None:
    """Refuse another kind or address of what a running VM sees before and after."""
    plugged = before.plugged and after.plugged
    if vm.status == "up" and plugged and (other_mac or before.interface != after.interface):
        raise device_refusals.nic_plugged_and_changed()


def check_removal(vm: Vm, nic: Nic) -> None:
    if vm.status not in ("down", "image_locked") and nic.plugged:
        raise device_refusals.nic_plugged_and_removed()


def _interfaces(state: State, vm: Vm) -> frozenset[str]:
    """Give the kinds that the VM's operating system knows, in the version of its cluster."""
    cluster = state.clusters[vm.cluster]
    known = _OF_OTHERS.get(cpu_architecture(cluster), _OF_X86)
    if known is not _OF_X86:
        return known
    if vm.particulars.os.startswith("windows"):
        known |= {"rtl8139_virtio"}
    new = compatibility.ordered(cluster.compatibility) >= _KNOWS_E1000E
    return known | {"e1000e"} if new else known
