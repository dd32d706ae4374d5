"""Affinity labels, tags of VMs and hosts, and devices of VMs, as far as placement keys go by them.

Source: the engine's AddLabelCommand, UpdateLabelCommand, RemoveLabelCommand, AddTagCommand, and those that
attach.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ovirt_placement.model import Disk, Nic, VnicProfile
from ovirt_simulator.core import rejections
from ovirt_simulator.core.backend import Commands, locked
from ovirt_simulator.core.commands import permissions
from ovirt_simulator.core.entities import ADMIN, AffinityLabel, Caller, Tag
from ovirt_simulator.core.events import EventCode, EventType
from ovirt_simulator.core.rejections import existing


class LabelCommands(Commands):
    """Commands on affinity labels; all raise `Rejected`. Members are never checked for conflicts."""

    @locked
    def add(
        self,
        name: str,
        *,
        vms: Sequence[str] = (),
        hosts: Sequence[str] = (),
        implicit: bool = False,
        caller: Caller = ADMIN,
    ) -> AffinityLabel:
        """Add a label; the name is unique over all labels (409)."""
        identity = self._backend.new_id()
        label = AffinityLabel(id=identity, name=name, vms=tuple(vms), hosts=tuple(hosts), implicit=implicit)
        return self._put_label(label, EventCode.USER_ADDED_AFFINITY_LABEL, caller)

    @locked
    def edit(self, label_id: str, *, caller: Caller = ADMIN, **changes: Any) -> AffinityLabel:
        """Change name, vms, hosts or implicit; lists replace the whole list. Raises `NotFound`."""
        changes |= {members: tuple(changes[members]) for members in ("vms", "hosts") if members in changes}
        label = replace(existing(self._state.labels, label_id), **changes)
        return self._put_label(label, EventCode.USER_UPDATED_AFFINITY_LABEL, caller)

    @locked
    def remove(self, label_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a label that has no members (409 else). Raises `NotFound`."""
        label = existing(self._state.labels, label_id)
        if label.vms or label.hosts:
            raise rejections.conflict(
                "Cannot remove Affinity Label. It is assigned to entities; take it off them first."
            )
        for group in tuple(self._state.groups.values()):
            if label_id in (*group.vm_labels, *group.host_labels):
                lists = {"vm_labels": group.vm_labels, "host_labels": group.host_labels}
                left = {name: tuple(one for one in ids if one != label_id) for name, ids in lists.items()}
                self._state.put(self._state.groups, replace(group, **left))
        self._state.drop(self._state.labels, label_id)
        self._log(EventCode.USER_REMOVED_AFFINITY_LABEL, caller, label=label.name)

    @locked
    def add_member(self, label_id: str, members: str, member_id: str, *, caller: Caller = ADMIN) -> None:
        """Put the label on one of `vms` or `hosts`; one that has it keeps it. Raises `NotFound`."""
        label = existing(self._state.labels, label_id)
        ids = tuple(dict.fromkeys((*getattr(label, members), member_id)))
        self._put_label(replace(label, **{members: ids}), EventCode.USER_UPDATED_AFFINITY_LABEL, caller)

    @locked
    def remove_member(self, label_id: str, members: str, member_id: str, *, caller: Caller = ADMIN) -> None:
        """Take one of `vms` or `hosts` out; raises `NotFound` when it is no member."""
        label = existing(self._state.labels, label_id)
        present: tuple[str, ...] = getattr(label, members)
        existing(dict.fromkeys(present), member_id)
        left = tuple(other for other in present if other != member_id)
        self._put_label(replace(label, **{members: left}), EventCode.USER_UPDATED_AFFINITY_LABEL, caller)

    def _put_label(self, label: AffinityLabel, code: EventType, caller: Caller) -> AffinityLabel:
        for other in self._state.labels.values():
            if other.id != label.id and other.name == label.name:
                raise rejections.conflict("Cannot add affinity label with a conflicting NAME.")
        for vm_id in label.vms:
            existing(self._state.vms, vm_id)
        for host_id in label.hosts:
            existing(self._state.hosts, host_id)
        self._state.put(self._state.labels, label)
        self._log(code, caller, label=label.name)
        return label


class TagCommands(Commands):
    """Commands on tags; all raise `NotFound` for what is not there.

    Their events name the VMs, and do not refer to them.
    """

    @locked
    def add(self, name: str, *, caller: Caller = ADMIN) -> Tag:
        """Add a tag."""
        tag = Tag(id=self._backend.new_id(), name=name)
        self._state.put(self._state.tags, tag)
        self._log(EventCode.USER_ADD_TAG, caller, tag=name)
        return tag

    @locked
    def update(self, tag_id: str, *, name: str, caller: Caller = ADMIN) -> Tag:
        """Give a tag another name; what has the tag has it under that."""
        before = existing(self._state.tags, tag_id)
        tag = replace(before, name=name)
        self._state.put(self._state.tags, tag)
        self._rename(before.name, (name,))
        self._log(EventCode.USER_UPDATE_TAG, caller, tag=name)
        return tag

    @locked
    def remove(self, tag_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a tag, which is taken off all VMs."""
        tag = existing(self._state.tags, tag_id)
        self._state.drop(self._state.tags, tag_id)
        self._rename(tag.name, ())
        self._log(EventCode.USER_REMOVE_TAG, caller, tag=tag.name)

    @locked
    def attach(self, tag_id: str, vm_id: str, *, caller: Caller = ADMIN) -> None:
        """Put a tag on a VM."""
        tag, vm = existing(self._state.tags, tag_id), existing(self._state.vms, vm_id)
        permissions.settle(self._state, replace(vm, tags=(*vm.tags, tag.name)))
        self._log(EventCode.USER_ATTACH_TAG_TO_VM, caller, tag=tag.name, names=vm.name)

    @locked
    def detach(self, tag_id: str, vm_id: str, *, caller: Caller = ADMIN) -> None:
        """Take a tag off a VM."""
        tag, vm = existing(self._state.tags, tag_id), existing(self._state.vms, vm_id)
        tags = tuple(name for name in vm.tags if name != tag.name)
        permissions.settle(self._state, replace(vm, tags=tags))
        self._log(EventCode.USER_DETACH_VM_FROM_TAG, caller, tag=tag.name, names=vm.name)

    def _rename(self, name: str, names: tuple[str, ...]) -> None:
        """Put another name of a tag, or none, in this one's place on all VMs."""
        for vm in tuple(self._state.vms.values()):
            if name in vm.tags:
                tags = (*(tag for tag in vm.tags if tag != name), *names)
                permissions.settle(self._state, replace(vm, tags=tags))


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
    def attach_disk(self, vm_id: str, disk: Disk, *, caller: Caller = ADMIN) -> None:
        """Give a VM a disk that no VM has."""
        vm = existing(self._state.vms, vm_id)
        if any(disk.id == one.id for known in self._state.vms.values() for one in known.disks):
            raise rejections.conflict("Cannot attach Virtual Disk. The disk is already attached to a VM.")
        self._state.put_vm(replace(vm, disks=(*vm.disks, disk)))
        self._log(EventCode.USER_ATTACH_DISK_TO_VM, caller, vm=vm, disk=disk.id)

    @locked
    def detach_disk(self, vm_id: str, disk_id: str, *, caller: Caller = ADMIN) -> None:
        vm = existing(self._state.vms, vm_id)
        disk = existing({disk.id: disk for disk in vm.disks}, disk_id)
        self._state.put_vm(replace(vm, disks=tuple(one for one in vm.disks if one != disk)))
        self._log(EventCode.USER_DETACH_DISK_FROM_VM, caller, vm=vm, disk=disk_id)
