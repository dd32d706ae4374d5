"""Reads what hangs on all VMs, which the engine looks up for each of them by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.parsing import surroundings
from ovirt_placement.engine.reading.by_id import reread_vms
from ovirt_placement.engine.reading.owners import Detail, followed, inherited_permissions, with_owners
from ovirt_placement.engine.reading.requests import get_collection, paged_vms, whole_answers
from ovirt_placement.model import Network, Snapshot, Vm, VnicProfile


class Networks(NamedTuple):
    """What network interfaces refer to."""

    networks: tuple[Network, ...] = ()
    vnic_profiles: tuple[VnicProfile, ...] = ()


def read_networks(connection: EngineConnection) -> Networks:
    """Read all networks and vNIC profiles; raises what `EngineConnection.get` raises."""
    with whole_answers(connection):
        profiles = surroundings.vnic_profiles(get_collection(connection, "/vnicprofiles"))
        return Networks(surroundings.networks(get_collection(connection, "/networks")), profiles)


def detailed_vms(connection: EngineConnection, details: Detail) -> tuple[Vm, ...]:
    """Read VMs with these details, page by page, as `paged_vms` does.

    What the VMs inherit is read before and after them: it may change meanwhile.
    """
    with whole_answers(connection):
        before = inherited_permissions(connection) if Detail.OWNER in details else frozenset()
        return with_owners(connection, paged_vms(connection, followed(details)), before)


def detailed(connection: EngineConnection, snapshot: Snapshot, details: Detail) -> Snapshot:
    """Return the snapshot with these details of every VM, but of those that are gone by now.

    Raises what `EngineConnection.get` raises.
    """
    found: Mapping[str, Vm] = {vm.id: vm for vm in detailed_vms(connection, details)}
    missed = [vm.id for vm in snapshot.vms if vm.id not in found]
    found = {**found, **reread_vms(connection, missed, details)}
    around = read_networks(connection) if Detail.NICS in details else Networks()
    vms = tuple(_laid_over(vm, found.get(vm.id, vm)) for vm in snapshot.vms)
    return replace(snapshot, vms=vms, networks=around.networks, vnic_profiles=around.vnic_profiles)


def _laid_over(vm: Vm, found: Vm) -> Vm:
    return replace(vm, disks=found.disks, nics=found.nics, tags=found.tags, owner=found.owner)
