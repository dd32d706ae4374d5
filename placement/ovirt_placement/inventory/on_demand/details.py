"""Disks, network interfaces and owners of VMs: costly for the engine, so read only where keys need them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ovirt_placement.engine.reading.detail import NO_DETAILS, Detail
from ovirt_placement.inventory.span import NEVER, Span
from ovirt_placement.model import Disk, Network, Nic, Vm, VnicProfile

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection

#: What stands for tags of VMs among these levels.
VM_TAGS = "tags"
#: What keys on each level of the hierarchy refer to; a VM as it is read anyway has all the others.
_REFERRED = {
    "customer_offer": Detail.OWNER,
    "customer": Detail.OWNER,
    "disk_offer": Detail.DISKS,
    "disk": Detail.DISKS,
    "network_offer": Detail.NICS,
    "network": Detail.NICS,
    "nic_offer": Detail.NICS,
    "nic": Detail.NICS,
    VM_TAGS: Detail.OWNER,
}


def referred(levels: Iterable[str]) -> Detail:
    """Say what placement keys on these levels refer to."""
    details = NO_DETAILS
    for level in levels:
        details |= _REFERRED.get(level, NO_DETAILS)
    return details


class VmDetails(NamedTuple):
    """The details of one VM; what was not read is empty."""

    disks: tuple[Disk, ...] = ()
    nics: tuple[Nic, ...] = ()
    tags: tuple[str, ...] = ()
    owner: str | None = None

    @classmethod
    def of(cls, vm: Vm) -> VmDetails:
        return cls(vm.disks, vm.nics, vm.tags, vm.owner)

    def only(self, wanted: Detail) -> VmDetails:
        """Leave out what is not wanted."""
        return VmDetails(
            self.disks if Detail.DISKS in wanted else (),
            self.nics if Detail.NICS in wanted else (),
            self.tags if Detail.OWNER in wanted else (),
            self.owner if Detail.OWNER in wanted else None,
        )


_NONE = VmDetails()


@dataclass(frozen=True)
class Details:
    """What one reading found of all VMs, by id, and what their network interfaces refer to."""

    #: What was read.
    read: Detail
    vms: Mapping[str, VmDetails] = field(default_factory=dict)
    networks: tuple[Network, ...] = ()
    vnic_profiles: tuple[VnicProfile, ...] = ()


def read_details(connection: EngineConnection, wanted: Detail) -> Details:
    """Read what is wanted of all VMs; raises what `EngineConnection.get` raises."""
    # The SDK takes long to load and is not needed where somebody publishes.
    from ovirt_placement.engine.reading.vm_details import detailed_vms, read_networks

    vms = {vm.id: VmDetails.of(vm) for vm in detailed_vms(connection, wanted)}
    around = read_networks(connection) if Detail.NICS in wanted else ()
    return Details(wanted, vms, *around)


class KnownDetails:
    """The details of each VM as they were read last, by itself or with all others."""

    def __init__(self) -> None:
        self.wanted = NO_DETAILS
        self.networks: tuple[Network, ...] = ()
        self.vnic_profiles: tuple[VnicProfile, ...] = ()
        self._vms: dict[str, tuple[Span, VmDetails]] = {}
        self._networks_read = NEVER
        #: The last reading of all VMs, if all that is wanted was read then.
        self._all_read = NEVER

    def want(self, wanted: Detail) -> None:
        """Forget what is not wanted any more."""
        if wanted & ~self.wanted:
            self._all_read = NEVER
        self.wanted = wanted
        known = self._vms.items() if wanted else ()
        self._vms = {vm: (span, found.only(wanted)) for vm, (span, found) in known}
        if Detail.NICS not in wanted:
            self.networks, self.vnic_profiles, self._networks_read = (), (), NEVER

    def put(self, vm: Vm, span: Span) -> bool:
        """Take a VM that was read with all that is wanted; whether that is newer than what was known."""
        if not self.wanted:
            return True
        if span.began < self._known(vm.id)[0].ended:
            return False
        self._vms[vm.id] = span, VmDetails.of(vm)
        return True

    def put_networks(
        self, networks: tuple[Network, ...], vnic_profiles: tuple[VnicProfile, ...], span: Span
    ) -> bool:
        """Take networks and vNIC profiles; whether they are newer than those that are known."""
        if Detail.NICS not in self.wanted:
            return True
        if span.began < self._networks_read.ended:
            return False
        self.networks, self.vnic_profiles, self._networks_read = networks, vnic_profiles, span
        return True

    def put_all(self, found: Details, span: Span) -> None:
        """Take a reading of all VMs; one that was read by itself since it began stays as it is.

        So does one that the reading lacks: it may have been shifted over the edge of a page.
        """
        for vm, details in found.vms.items():
            if self._known(vm)[0].began <= span.began:
                self._vms[vm] = span, details.only(self.wanted)
        self.put_networks(found.networks, found.vnic_profiles, span)
        self._all_read = span

    def of_vm(self, vm: Vm) -> Vm:
        """Return the VM with what is known of it."""
        return _laid_over(vm, self._known(vm.id)[1])

    def missed(self, vms: Collection[str]) -> tuple[str, ...]:
        """Name those of these VMs that the last reading of all has missed; forget all others than these."""
        for gone in self._vms.keys() - vms:
            del self._vms[gone]
        return tuple(vm for vm in vms if self._known(vm)[0].began < self._all_read.began)

    def has_unknown_profile(self, vm: Vm) -> bool:
        """Whether an interface of the VM has a vNIC profile that is not known yet."""
        profiles = {profile.id for profile in self.vnic_profiles}
        return any(nic.vnic_profile is not None and nic.vnic_profile not in profiles for nic in vm.nics)

    def _known(self, vm: str) -> tuple[Span, VmDetails]:
        return self._vms.get(vm, (NEVER, _NONE))


def _laid_over(vm: Vm, details: VmDetails) -> Vm:
    if VmDetails.of(vm) == details:
        return vm
    return replace(vm, disks=details.disks, nics=details.nics, tags=details.tags, owner=details.owner)
