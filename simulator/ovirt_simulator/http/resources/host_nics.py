"""The network interfaces of hosts, read."""

from __future__ import annotations

from ovirt_simulator.core.host_nic import HostNic
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import host_nic as render
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.resources.hosts import visible_host


def list_all(call: Call, host_id: str) -> list[str]:
    return [_render(call, _nic(call, host_id))]


def get(call: Call, host_id: str, nic_id: str) -> str:
    return _render(call, visible_nic(call, host_id, nic_id))


def visible_nic(call: Call, host_id: str, nic_id: str) -> HostNic:
    nic = _nic(call, host_id)
    return present(nic if nic.id == nic_id else None)


def _nic(call: Call, host_id: str) -> HostNic:
    return call.queries.host_nic(visible_host(call, host_id))


def _render(call: Call, nic: HostNic) -> str:
    return render.host_nic(nic, call.links("hosts", nic.host, "nics", nic.id))
