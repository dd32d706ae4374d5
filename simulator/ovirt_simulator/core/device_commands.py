"""Disks and network interfaces of VMs: attach, change, detach; vNIC profiles.

Source: the engine's AddVmInterfaceCommand, AttachDiskToVmCommand and their like.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from ovirt_placement.model import Disk, Nic, VnicProfile

from . import image_refusals, mac_addresses
from .backend import Backend
from .device_refusals import nic_name_used, vnic_profile_used
from .entities import ADMIN, Caller, Vm
from .event_codes import EventCode, EventType
from .rejections import NotFound, existing
from .vm_snapshot import holds_disk

Device = TypeVar("Device", Disk, Nic)


class DeviceCommands:
    """Commands on a VM's devices, at once, whether it runs or not; all raise `NotFound`, and `Rejected`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def add_nic(
        self,
        vm_id: str,
        name: str,
        *,
        vnic_profile: str | None = None,
        mac: str | None = None,
        caller: Caller = ADMIN,
    ) -> Nic:
        """Add a network interface, of a name that the VM's others have not."""
        with self._backend.lock:
            vm = self._vm(vm_id)
            if any(one.name == name for one in vm.nics):
                raise nic_name_used()
            nic = Nic(id=self._backend.new_id(), name=name, vnic_profile=self._profile(vnic_profile))
            if mac is not None:
                mac_addresses.give(self._state, vm, nic.id, mac)
            self._state.put_vm(replace(vm, nics=(*vm.nics, nic)))
            self._log(EventCode.NETWORK_ADD_VM_INTERFACE, vm, caller, nic=name)
            return nic

    def edit_nic(
        self,
        vm_id: str,
        nic_id: str,
        *,
        name: str | None = None,
        vnic_profile: str | None = None,
        mac: str | None = None,
        caller: Caller = ADMIN,
    ) -> Nic:
        """Connect a NIC through this vNIC profile, or through none; perhaps with another name or MAC."""
        with self._backend.lock:
            vm = self._vm(vm_id)
            if any(one.name == name and one.id != nic_id for one in vm.nics):
                raise nic_name_used()
            profile = self._profile(vnic_profile)
            before = _known(vm.nics, nic_id)
            nic = replace(before, name=name or before.name, vnic_profile=profile)
            if mac is not None:
                mac_addresses.give(self._state, vm, nic_id, mac)
            self._state.put_vm(replace(vm, nics=tuple(nic if one.id == nic_id else one for one in vm.nics)))
            self._log(EventCode.NETWORK_UPDATE_VM_INTERFACE, vm, caller, nic=nic.name)
            return nic

    def remove_nic(self, vm_id: str, nic_id: str, *, caller: Caller = ADMIN) -> None:
        with self._backend.lock:
            vm = self._vm(vm_id)
            nic = _known(vm.nics, nic_id)
            self._state.put_vm(replace(vm, nics=tuple(one for one in vm.nics if one.id != nic_id)))
            self._state.macs.pop(nic_id, None)
            self._log(EventCode.NETWORK_REMOVE_VM_INTERFACE, vm, caller, nic=nic.name)

    def attach_disk(
        self,
        vm_id: str,
        disk: Disk,
        *,
        active: bool | None = None,
        interface: str | None = None,
        caller: Caller = ADMIN,
    ) -> None:
        """Attach a disk, or change one that is attached; an active one the VM sees."""
        with self._backend.lock:
            vm = self._vm(vm_id)
            if any(other.id != vm_id for other in self._state.disk_owners(disk.id)):
                raise image_refusals.disk_attached_already()
            disks = {one.id: one for one in vm.disks} | {disk.id: disk}
            known = len(disks) == len(vm.disks)
            code = EventCode.USER_UPDATE_VM_DISK if known else EventCode.USER_ATTACH_DISK_TO_VM
            image = self._state.image(disk.id)
            if image is None:
                raise NotFound(disk.id)
            seen = image.active if active is None else active
            image = replace(image, active=seen, interface=interface or image.interface)
            self._state.put(self._state.images, image)
            self._state.put_vm(replace(vm, disks=tuple(disks.values())))
            self._log(code, vm, caller, disk=disk.id)

    def detach_disk(self, vm_id: str, disk_id: str, *, caller: Caller = ADMIN) -> None:
        with self._backend.lock:
            vm = self._vm(vm_id)
            disk = _known(vm.disks, disk_id)
            if holds_disk(self._state.vm_snapshots.values(), disk_id):
                raise image_refusals.disk_in_snapshot()
            image = self._state.image(disk_id)
            if image is not None:
                self._state.put(self._state.images, image)  # one of the state file is there without a VM, too
            self._state.put_vm(replace(vm, disks=tuple(one for one in vm.disks if one.id != disk.id)))
            self._log(EventCode.USER_DETACH_DISK_FROM_VM, vm, caller, disk=disk.id)

    def add_vnic_profile(self, name: str, network_id: str, *, caller: Caller = ADMIN) -> VnicProfile:
        """Add a vNIC profile of a network."""
        with self._backend.lock:
            existing(self._state.networks, network_id)
            profile = VnicProfile(id=self._backend.new_id(), name=name, network=network_id)
            self._state.put(self._state.vnic_profiles, profile)
            self._log_profile(EventCode.ADD_VNIC_PROFILE, profile, caller)
            return profile

    def remove_vnic_profile(self, profile_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a vNIC profile that no NIC has."""
        with self._backend.lock:
            existing(self._state.vnic_profiles, profile_id)
            users = [
                vm.name
                for vm in self._state.vms.values()
                if any(nic.vnic_profile == profile_id for nic in vm.nics)
            ]
            if users:
                raise vnic_profile_used(users)
            profile = self._state.vnic_profiles[profile_id]
            self._state.drop(self._state.vnic_profiles, profile_id)
            self._log_profile(EventCode.REMOVE_VNIC_PROFILE, profile, caller)

    def _log_profile(self, code: EventType, profile: VnicProfile, caller: Caller) -> None:
        data_center = next(iter(self._state.data_centers.values()))
        network = self._state.networks.get(profile.network or "")
        words = {
            "profile": profile.name,
            "network": network.name if network else "",
            "data_center": data_center.name,
        }
        self._backend.audit_log.log(code, caller, words=words)

    def _vm(self, vm_id: str) -> Vm:
        return existing(self._state.vms, vm_id)

    def _profile(self, profile_id: str | None) -> str | None:
        if profile_id is not None and profile_id not in self._state.vnic_profiles:
            raise NotFound(profile_id)
        return profile_id

    def _log(self, code: EventType, vm: Vm, caller: Caller, **words: str) -> None:
        self._backend.audit_log.log(code, caller, vm=vm, words=words)


def _known(devices: Sequence[Device], device_id: str) -> Device:
    for device in devices:
        if device.id == device_id:
            return device
    raise NotFound(device_id)
