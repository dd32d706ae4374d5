"""Statistics of hosts, VMs and their devices: measured again at every request, like the engine's."""

from __future__ import annotations

from collections.abc import Iterable

from ovirt_simulator.core.device_statistics import OF_DISKS, OF_NICS
from ovirt_simulator.core.entities import Statistic
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.markup import entity, path
from ovirt_simulator.http.render import statistic as render
from ovirt_simulator.http.resources.find import present, visible_vm
from ovirt_simulator.http.resources.host_nics import visible_nic
from ovirt_simulator.http.resources.hosts import visible_host


def list_of_vm(call: Call, vm_id: str) -> list[str]:
    visible_vm(call, vm_id)
    return _render(call, call.queries.vm_statistics(vm_id), "vm", path("vms", vm_id), vm_id)


def list_of_host(call: Call, host_id: str) -> list[str]:
    visible_host(call, host_id)
    return _render(call, call.queries.host_statistics(host_id), "host", path("hosts", host_id), host_id)


def get_of_vm(call: Call, vm_id: str, statistic_id: str) -> str:
    visible_vm(call, vm_id)
    found = _with_id(call.queries.vm_statistics(vm_id), statistic_id)
    return _render(call, found, "vm", path("vms", vm_id), vm_id)[0]


def get_of_host(call: Call, host_id: str, statistic_id: str) -> str:
    visible_host(call, host_id)
    found = _with_id(call.queries.host_statistics(host_id), statistic_id)
    return _render(call, found, "host", path("hosts", host_id), host_id)[0]


def list_of_disk(call: Call, disk_id: str) -> list[str]:
    present(call.queries.disk(disk_id))
    return _render(call, OF_DISKS, "disk", path("disks", disk_id), disk_id)


def get_of_disk(call: Call, disk_id: str, statistic_id: str) -> str:
    present(call.queries.disk(disk_id))
    return _render(call, _with_id(OF_DISKS, statistic_id), "disk", path("disks", disk_id), disk_id)[0]


def list_of_nic(call: Call, vm_id: str, nic_id: str) -> list[str]:
    return _render(call, OF_NICS, "nic", _nic(call, vm_id, nic_id), nic_id)


def get_of_nic(call: Call, vm_id: str, nic_id: str, statistic_id: str) -> str:
    return _render(call, _with_id(OF_NICS, statistic_id), "nic", _nic(call, vm_id, nic_id), nic_id)[0]


def list_of_host_nic(call: Call, host_id: str, nic_id: str) -> list[str]:
    return _render(call, OF_NICS, "host_nic", _host_nic(call, host_id, nic_id), nic_id)


def get_of_host_nic(call: Call, host_id: str, nic_id: str, statistic_id: str) -> str:
    href = _host_nic(call, host_id, nic_id)
    return _render(call, _with_id(OF_NICS, statistic_id), "host_nic", href, nic_id)[0]


def _host_nic(call: Call, host_id: str, nic_id: str) -> str:
    """Give the address of a host's NIC that is there."""
    return path("hosts", host_id, "nics", visible_nic(call, host_id, nic_id).id)


def _nic(call: Call, vm_id: str, nic_id: str) -> str:
    """Give the address of a NIC that is there."""
    present(next((nic for nic in visible_vm(call, vm_id).nics if nic.id == nic_id), None))
    return path("vms", vm_id, "nics", nic_id)


def _with_id(records: Iterable[Statistic], statistic_id: str) -> list[Statistic]:
    return [present(next((each for each in records if render.statistic_id(each.name) == statistic_id), None))]


def _render(call: Call, records: Iterable[Statistic], tag: str, href: str, owner_id: str) -> list[str]:
    owner = entity(tag, href, owner_id)
    return [
        render.statistic(
            record, call.links_at(f"{href}/statistics/{render.statistic_id(record.name)}"), owner=owner
        )
        for record in records
    ]
