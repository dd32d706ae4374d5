"""Devices of VMs, as far as placement keys go by them: NICs with their profiles, and disks."""

from __future__ import annotations

from msgspec.structs import replace

from ovirt_placement.model import Nic, VnicProfile

from .backend import Commands, locked
from .entities import ADMIN, Caller
from .events import EventCode
from .rejections import existing


class DeviceCommands(Commands):
    """Commands on a VM's devices, at once, whether it runs or not; all raise `NotFound`."""

    @locked
    def add_nic(self, vm_id: str, nic: Nic, *, caller: Caller = ADMIN) -> Nic:
        """Add a NIC, which gets an id."""
        vm, nic = existing(self._state.vms, vm_id), replace(nic, id=self._backend.new_id())
        self._state.put_vm(replace(vm, nics=(*vm.nics, nic)))
        self._log(EventCode.NETWORK_ADD_VM_INTERFACE, caller, vm=vm, nic=nic.name)
        return nic

    @locked
    def remove_nic(self, vm_id: str, nic_id: str, *, caller: Caller = ADMIN) -> None:
        vm = existing(self._state.vms, vm_id)
        nic = existing({nic.id: nic for nic in vm.nics}, nic_id)
        self._state.put_vm(replace(vm, nics=tuple(one for one in vm.nics if one != nic)))
        self._log(EventCode.NETWORK_REMOVE_VM_INTERFACE, caller, vm=vm, nic=nic.name)

    @locked
    def add_vnic_profile(self, name: str, network: str) -> VnicProfile:
        """Add a profile of a network."""
        profile = VnicProfile(id=self._backend.new_id(), name=name, network=network)
        self._state.put(self._state.vnic_profiles, profile)
        data_center, known = next(iter(self._state.data_centers.values())), self._state.networks.get(network)
        words = {"profile": name, "network": known.name if known else "", "data_center": data_center.name}
        self._backend.audit_log.log(EventCode.ADD_VNIC_PROFILE, ADMIN, words=words)
        return profile

    @locked
    def detach_disk(self, vm_id: str, disk_id: str, *, caller: Caller = ADMIN) -> None:
        vm = existing(self._state.vms, vm_id)
        disk = existing({disk.id: disk for disk in vm.disks}, disk_id)
        self._state.put_vm(replace(vm, disks=tuple(one for one in vm.disks if one != disk)))
        self._log(EventCode.USER_DETACH_DISK_FROM_VM, caller, vm=vm, disk=disk_id)
