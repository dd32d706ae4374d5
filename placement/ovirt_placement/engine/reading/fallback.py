"""Asks one by one for what an answer lacks although it was to be followed, as in a recording of an engine."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from http import HTTPStatus

from msgspec.structs import replace

from ovirt_placement.engine.connection.client import EngineConnection, EngineFault
from ovirt_placement.engine.parsing import devices, users, vms, xml
from ovirt_placement.engine.parsing.statistics import of_host, of_vm
from ovirt_placement.engine.parsing.vms import FoundVm
from ovirt_placement.model import Host


def ignored(content: bytes, follow: Iterable[str]) -> bool:
    """Whether nothing of what was to be followed is in the answer, not even an empty list."""
    names = [name.partition(".")[0].encode() for name in follow]
    return bool(names) and not any(b"<" + name in content for name in names)


def complete_host(connection: EngineConnection, host: Host, follow: Iterable[str]) -> Host:
    """Read what was to be followed of a host from its own collections."""
    path = f"/hosts/{host.id}"
    if "statistics" in follow and (found := _collection(connection, f"{path}/statistics")) is not None:
        host = of_host(found).put_on(host)
    if "tags" in follow:
        host = replace(host, tags=devices.tags(_collection(connection, f"{path}/tags")))
    return host


def found_vms(connection: EngineConnection, content: bytes, follow: Collection[str]) -> tuple[FoundVm, ...]:
    """Read VMs out of an answer, and what was to be followed of them from elsewhere if it is not there."""
    found = vms.read(content)
    if ignored(content, follow):
        return tuple(_complete_vm(connection, one, follow) for one in found)
    return found


def permission_ids(connection: EngineConnection, clusters: Iterable[str]) -> frozenset[str]:
    """Read the ids of the permissions that these clusters show."""
    shown = (_collection(connection, f"/clusters/{cluster}/permissions") for cluster in clusters)
    return frozenset().union(*(users.permission_ids(found) for found in shown if found is not None))


def _complete_vm(connection: EngineConnection, found: FoundVm, follow: Collection[str]) -> FoundVm:
    path, vm, grants = f"/vms/{found.id}", found.vm, found.grants
    if "statistics" in follow and vm.host is not None:
        statistics = _collection(connection, f"{path}/statistics")
        if statistics is not None:
            vm = of_vm(statistics).put_on(vm)
    if "tags" in follow:
        vm = replace(vm, tags=devices.tags(_collection(connection, f"{path}/tags")))
    if "nics" in follow:
        vm = replace(vm, nics=devices.nics(_collection(connection, f"{path}/nics")))
    if "disk_attachments.disk" in follow:
        vm = replace(vm, disks=devices.disks(_collection(connection, f"{path}/diskattachments")))
    if "permissions" in follow:
        grants = users.grants(_collection(connection, f"{path}/permissions"))
    return FoundVm(vm, grants)


def _collection(connection: EngineConnection, path: str) -> xml.Element | None:
    """Read a collection of one entity; None where the engine has none."""
    try:
        return xml.root(connection.get(path))
    except EngineFault as fault:
        if fault.code == HTTPStatus.NOT_FOUND:
            return None
        raise
