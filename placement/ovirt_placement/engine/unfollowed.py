"""Asks one by one for what an answer lacks although it was to be followed, as in a recording of an engine."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ovirt_placement.engine.connection import EngineConnection, EngineFault
from ovirt_placement.engine.parsing import devices, xml
from ovirt_placement.engine.parsing.statistics import of_host, of_vm
from ovirt_placement.model import Host, Vm


def ignored(content: bytes, follow: Iterable[str]) -> bool:
    """Whether nothing of what was to be followed is in the answer, not even an empty list."""
    names = [name.partition(".")[0].encode() for name in follow]
    return bool(names) and not any(b"<" + name in content for name in names)


def complete_host(connection: EngineConnection, host: Host, follow: Iterable[str]) -> Host:
    """Read what was to be followed of a host from its own collections."""
    path = f"/hosts/{host.id}"
    if "statistics" in follow and (found := _collection(connection, f"{path}/statistics")) is not None:
        measured = of_host(found)
        host = replace(host, cpu_percent=measured.cpu_percent, memory_free_mb=measured.memory_free_mb)
    if "tags" in follow:
        host = replace(host, tags=devices.tags(_collection(connection, f"{path}/tags")))
    return host


def complete_vm(connection: EngineConnection, vm: Vm, follow: Iterable[str]) -> Vm:
    """Read what was to be followed of a VM from its own collections."""
    path = f"/vms/{vm.id}"
    if "statistics" in follow and vm.host is not None:
        found = _collection(connection, f"{path}/statistics")
        if found is not None:
            measured = of_vm(found)
            vm = replace(vm, usage_mem_percent=measured.mem_percent, usage_cpu_percent=measured.cpu_percent)
    if "nics" in follow:
        vm = replace(
            vm,
            tags=devices.tags(_collection(connection, f"{path}/tags")),
            nics=devices.nics(_collection(connection, f"{path}/nics")),
            disks=devices.disks(_collection(connection, f"{path}/diskattachments")),
        )
    return vm


def _collection(connection: EngineConnection, path: str) -> xml.Element | None:
    """Read a collection of one entity; None where the engine has none."""
    try:
        return xml.root(connection.get(path))
    except EngineFault as fault:
        if fault.code == 404:
            return None
        raise
