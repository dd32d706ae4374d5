"""What an administrator does at the engine's own portal and no client of ours asks for, with its events."""

from datetime import UTC, datetime

from msgspec.structs import asdict, replace

from ovirt_placement import model
from ovirt_placement.model import Disk, VnicProfile
from ovirt_simulator.core import loading
from ovirt_simulator.core.backend import Commands, locked
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import ADMIN, USER_ROLE, USER_VM_MANAGER, Permission, Tag, Vm
from ovirt_simulator.core.messages import EventCode, EventType

_TAG_UPDATED = EventType(430, "Tag {tag} configuration was updated by {user}.")
_TAG_ADDED = EventType(432, "New Tag {tag} was created by {user}.")
_TAG_REMOVED = EventType(434, "Tag {tag} was removed by {user}.")
_TAG_ATTACHED = EventType(440, "Tag {tag} was attached to VM(s) {names} by {user}.")
_TAG_DETACHED = EventType(446, "Tag {tag} was detached from VM(s) {names} by {user}.")
_PERMISSION_ADDED = EventType(
    850,
    "User/Group {subject}, Namespace *, Authorization provider: internal-authz was granted permission"
    " for Role {role} on {type} {object}, by {user}.",
)
_PERMISSION_REMOVED = EventType(
    852, "User/Group {subject} Role {role} permission was removed from {type} {object} by {user}"
)
_NIC_REMOVED = EventType(930, "Interface {nic} (VirtIO) was removed from VM {vm}. (User: {user})")
_PROFILE_ADDED = EventType(
    1122,
    "VM network interface profile {profile} was added to network {network} in Data Center:"
    " {data_center}. (User: {user})",
)
_DISK_ATTACHED = EventType(2016, "Disk {disk} was successfully attached to VM {vm} by {user}.")
_DISK_DETACHED = EventType(2018, "Disk {disk} was successfully detached from VM {vm} by {user}.")


class Portal(Commands):
    """Permissions and tags of VMs, which say whose they are; disks, NICs and their profiles."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine._backend)

    @locked
    def add_vm(self, vm: model.Vm) -> None:
        """Add a VM, which is down."""
        created = Vm(**asdict(replace(vm, host=None, status="down", migrating_to=None)))
        self._state.put_vm(created)
        loading.grant(self._state, created)
        self._log(EventCode.USER_ADD_VM, ADMIN, vm=created)

    @locked
    def dismiss_event(self, event_id: int) -> None:
        """Hide an event for ever; its custom id stays taken."""
        events = self._backend.events
        events[event_id] = replace(events[event_id], visible=datetime.max.replace(tzinfo=UTC))

    @locked
    def grant(self, role: str, holder: str, *, is_group: bool = False, **on: str | None) -> Permission:
        """Give a user or group a role, by its id, on a `vm` or `cluster`, or on the whole system."""
        permission = Permission(id="", role=role, holder=holder, is_group=is_group, **on)
        for known in self._state.permissions.values():
            if replace(known, id="") == permission:
                return known
        permission = replace(permission, id=self._backend.new_id())
        self._state.put(self._state.permissions, permission)
        self._log_permission(_PERMISSION_ADDED, permission)
        return permission

    @locked
    def revoke(self, permission_id: str) -> None:
        permission = self._state.permissions[permission_id]
        self._state.drop(self._state.permissions, permission_id)
        self._log_permission(_PERMISSION_REMOVED, permission)

    def _log_permission(self, code: EventType, permission: Permission) -> None:
        kind, name = "System", "System"
        if permission.vm is not None:
            kind, name = "VM", self._state.vms[permission.vm].name
            self._settle(self._state.vms[permission.vm])
        elif permission.cluster is not None:
            kind, name = "Cluster", self._state.clusters[permission.cluster].name
        role = self._state.roles[permission.role].name
        self._log(code, ADMIN, subject=permission.holder, role=role, type=kind, object=name)

    def _settle(self, vm: Vm) -> None:
        """Have the VM belong to whom a tag names, else to its one manager, else to its one user."""
        found = [one for one in self._state.permissions.values() if one.vm == vm.id]
        managers, users = (
            {permission.holder for permission in found if permission.role == role.id}
            for role in (USER_VM_MANAGER, USER_ROLE)
        )
        claims = loading.named_by_tags(vm) or managers or users
        self._state.put_vm(replace(vm, owner=claims.pop() if len(claims) == 1 else None))

    @locked
    def add_tag(self, name: str) -> Tag:
        tag = Tag(id=self._backend.new_id(), name=name)
        self._state.put(self._state.tags, tag)
        self._log(_TAG_ADDED, ADMIN, tag=name)
        return tag

    @locked
    def rename_tag(self, tag_id: str, name: str) -> None:
        before = self._state.tags[tag_id]
        self._state.put(self._state.tags, replace(before, name=name))
        self._replace_tag(before.name, (name,))
        self._log(_TAG_UPDATED, ADMIN, tag=name)

    @locked
    def remove_tag(self, tag_id: str) -> None:
        tag = self._state.tags[tag_id]
        self._state.drop(self._state.tags, tag_id)
        self._replace_tag(tag.name, ())
        self._log(_TAG_REMOVED, ADMIN, tag=tag.name)

    def _replace_tag(self, name: str, names: tuple[str, ...]) -> None:
        for vm in tuple(self._state.vms.values()):
            if name in vm.tags:
                self._settle(replace(vm, tags=(*(tag for tag in vm.tags if tag != name), *names)))

    @locked
    def attach_tag(self, tag_id: str, vm_id: str) -> None:
        """Put a tag on a VM; the event names the VM, and does not refer to it."""
        tag, vm = self._state.tags[tag_id], self._state.vms[vm_id]
        self._settle(replace(vm, tags=(*vm.tags, tag.name)))
        self._log(_TAG_ATTACHED, ADMIN, tag=tag.name, names=vm.name)

    @locked
    def detach_tag(self, tag_id: str, vm_id: str) -> None:
        tag, vm = self._state.tags[tag_id], self._state.vms[vm_id]
        self._settle(replace(vm, tags=tuple(name for name in vm.tags if name != tag.name)))
        self._log(_TAG_DETACHED, ADMIN, tag=tag.name, names=vm.name)

    @locked
    def remove_nic(self, vm_id: str, nic_id: str) -> None:
        vm = self._state.vms[vm_id]
        nic = next(one for one in vm.nics if one.id == nic_id)
        self._change_vm(vm_id, nics=tuple(one for one in vm.nics if one != nic))
        self._log(_NIC_REMOVED, ADMIN, vm=vm, nic=nic.name)

    @locked
    def add_vnic_profile(self, name: str, network: str) -> None:
        profile = VnicProfile(id=self._backend.new_id(), name=name, network=network)
        self._state.put(self._state.vnic_profiles, profile)
        data_center, known = next(iter(self._state.data_centers.values())), self._state.networks.get(network)
        words = {"profile": name, "network": known.name if known else "", "data_center": data_center.name}
        self._log(_PROFILE_ADDED, ADMIN, **words)

    @locked
    def attach_disk(self, vm_id: str, disk: Disk) -> None:
        """Give a VM a disk, unless a VM has it."""
        vm = self._state.vms[vm_id]
        if any(disk.id == one.id for known in self._state.vms.values() for one in known.disks):
            return
        self._change_vm(vm_id, disks=(*vm.disks, disk))
        self._log(_DISK_ATTACHED, ADMIN, vm=vm, disk=disk.id)

    @locked
    def detach_disk(self, vm_id: str, disk_id: str) -> None:
        vm = self._state.vms[vm_id]
        self._change_vm(vm_id, disks=tuple(one for one in vm.disks if one.id != disk_id))
        self._log(_DISK_DETACHED, ADMIN, vm=vm, disk=disk_id)
