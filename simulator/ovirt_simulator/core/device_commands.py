"""Disks and network interfaces of VMs: attach, change, detach; vNIC profiles.

Source: the engine's AddVmInterfaceCommand, AttachDiskToVmCommand and their like.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from ovirt_placement.model import VnicProfile

from . import disk_rules, image_refusals, mac_addresses, nic_rules
from .backend import Backend
from .device_refusals import nic_name_used, vnic_profile_used
from .devices import Attachment, Nic
from .entities import ADMIN, Caller, Vm
from .event_codes import EventCode, EventType
from .rejections import NotFound, existing
from .vm_snapshot import holds_disk

Device = TypeVar("Device", Attachment, Nic)
_PLUGGED = EventCode.NETWORK_ACTIVATE_VM_INTERFACE_SUCCESS
_UNPLUGGED = EventCode.NETWORK_DEACTIVATE_VM_INTERFACE_SUCCESS


class DeviceCommands:
    """Commands on a VM's devices, at once, whether it runs or not; all raise `NotFound`, and `Rejected`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def add_nic(self, vm_id: str, nic: Nic, *, mac: str | None = None, caller: Caller = ADMIN) -> Nic:
        """Add a network interface, of a name that the VM's others have not; its id it gets here."""
        with self._backend.lock:
            vm = self._vm(vm_id)
            nic_rules.check_status(vm, "add")
            if any(one.name == nic.name for one in vm.nics):
                raise nic_name_used()
            self._check_profile(nic)
            nic_rules.check_nic(self._state, vm, nic, "add")
            nic = replace(nic, id=self._backend.new_id())
            if mac is not None:
                mac_addresses.give(self._state, vm, nic.id, mac)
            self._state.put_vm(replace(vm, nics=(*vm.nics, nic)))
            self._log_nic(EventCode.NETWORK_ADD_VM_INTERFACE, vm, nic, caller)
            return nic

    def edit_nic(self, vm_id: str, nic: Nic, *, mac: str | None = None, caller: Caller = ADMIN) -> Nic:
        """Let the NIC of this id be like this, perhaps with another MAC address."""
        with self._backend.lock:
            vm = self._vm(vm_id)
            before = _known(vm.nics, nic.id)
            nic_rules.check_status(vm, "edit")
            if any(one.name == nic.name and one.id != nic.id for one in vm.nics):
                raise nic_name_used()
            other_mac = mac not in (None, mac_addresses.mac_address(self._state, nic.id))
            nic_rules.check_hot_change(vm, before, nic, other_mac=other_mac)
            self._check_profile(nic)
            nic_rules.check_nic(self._state, vm, nic, "edit")
            if mac is not None:
                mac_addresses.give(self._state, vm, nic.id, mac)
            self._state.put_vm(replace(vm, nics=tuple(nic if one.id == nic.id else one for one in vm.nics)))
            if before.plugged != nic.plugged:
                self._log_nic(_PLUGGED if nic.plugged else _UNPLUGGED, vm, nic, caller)
            link = "" if before.linked == nic.linked else f"Link State is {'UP' if nic.linked else 'DOWN'}."
            self._log_nic(EventCode.NETWORK_UPDATE_VM_INTERFACE, vm, nic, caller, link=link)
            return nic

    def remove_nic(self, vm_id: str, nic_id: str, *, caller: Caller = ADMIN) -> None:
        with self._backend.lock:
            vm = self._vm(vm_id)
            nic = _known(vm.nics, nic_id)
            nic_rules.check_removal(vm, nic)
            self._state.put_vm(replace(vm, nics=tuple(one for one in vm.nics if one.id != nic_id)))
            self._state.macs.pop(nic_id, None)
            self._log_nic(EventCode.NETWORK_REMOVE_VM_INTERFACE, vm, nic, caller)

    def attach_disk(self, vm_id: str, disk: Attachment, *, caller: Caller = ADMIN) -> None:
        """Attach a disk to one VM more, which may be the first, or let a VM that has it see it like this."""
        with self._backend.lock:
            vm = self._vm(vm_id)
            image = self._state.image(disk.id)
            if image is None:
                raise NotFound(disk.id)
            before = next((one for one in vm.disks if one.id == disk.id), None)
            if before is None and self._state.disk_owners(disk.id) and not image.shareable:
                raise image_refusals.disk_attached_already()
            disk_rules.check_attached(image, disk, "attach" if before is None else "edit")
            if before is not None:
                disk_rules.check_reattached(vm, before, disk)
            disks = {one.id: one for one in vm.disks} | {disk.id: disk}
            self._state.put(self._state.images, image)  # it stays as it is when no VM has it
            self._state.put_vm(replace(vm, disks=tuple(disks.values())))
            code = EventCode.USER_ATTACH_DISK_TO_VM if before is None else EventCode.USER_UPDATE_VM_DISK
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

    def _check_profile(self, nic: Nic) -> None:
        if nic.vnic_profile is not None and nic.vnic_profile not in self._state.vnic_profiles:
            raise NotFound(nic.vnic_profile)

    def _log_nic(self, code: EventType, vm: Vm, nic: Nic, caller: Caller, **words: str) -> None:
        self._log(code, vm, caller, nic=nic.name, type=nic_rules.DESCRIPTIONS[nic.interface], **words)

    def _log(self, code: EventType, vm: Vm, caller: Caller, **words: str) -> None:
        self._backend.audit_log.log(code, caller, vm=vm, words=words)


def _known(devices: Sequence[Device], device_id: str) -> Device:
    for device in devices:
        if device.id == device_id:
            return device
    raise NotFound(device_id)
