"""Statistics of hosts, VMs and their devices: measured again at every request, like the engine's."""

from __future__ import annotations

from collections.abc import Iterable

from ovirt_simulator.core.entities import Statistic
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.markup import entity, path
from ovirt_simulator.http.render import statistic as render
from ovirt_simulator.http.resources.find import present, visible_vm
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
