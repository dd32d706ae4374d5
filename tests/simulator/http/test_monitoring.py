"""What exporters of metrics read: lists, and of each of their entries the parts and the statistics."""

from __future__ import annotations

from datetime import datetime

from lxml import etree

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request


def read(server: Server, address: str) -> etree._Element:
    reply = request(f"{server.api_url}/{address}")
    assert reply.status == 200
    return reply.xml


def topology(node: etree._Element) -> tuple[int, ...]:
    parts = ("sockets", "cores", "threads")
    return tuple(int(node.findtext(f"cpu/topology/{part}") or 0) for part in parts)


def statistics(server: Server, address: str) -> dict[str | None, str | None]:
    return {
        each.findtext("name"): each.findtext("values/value/datum")
        for each in read(server, f"{address}/statistics")
        if each.findtext("type") in ("integer", "decimal") and each.find("values/value") is not None
    }


def test_hosts(server: Server, engine: Engine) -> None:
    for node in read(server, "hosts"):
        host = engine.queries.host(node.get("id") or "")
        assert host is not None
        assert node.findtext("status") == ("up" if host.up else "maintenance")
        assert int(node.findtext("memory") or 0) == host.memory_mb << 20
        sockets, cores, _ = topology(node)
        assert sockets * cores == host.cores
        assert float(node.findtext("cpu/speed") or 0) > 0
        assert read(server, f"clusters/{node.find('cluster').get('id')}").findtext("name")
        figures = statistics(server, f"hosts/{host.id}")
        assert figures["memory.total"] == (str(host.memory_mb << 20) if host.up else "0")
        assert all(value is not None and float(value) >= 0 for value in figures.values())


def test_vms(server: Server, engine: Engine) -> None:
    for node in read(server, "vms"):
        vm = engine.queries.vm(node.get("id") or "")
        assert vm is not None
        assert (node.findtext("status"), node.find("has_illegal_images")) == (vm.status, None)
        assert topology(node) == (vm.sockets, vm.particulars.cores, vm.threads_per_core)
        assert (node.find("host") is not None) == (vm.host is not None)
        assert statistics(server, f"vms/{vm.id}")["memory.installed"] == str(vm.memory_mb << 20)
        for nic in read(server, f"vms/{vm.id}/nics"):
            assert nic.findtext("mac/address")
            assert statistics(server, f"vms/{vm.id}/nics/{nic.get('id')}")["data.current.rx.bps"] == "0"
        active, *_ = read(server, f"vms/{vm.id}/snapshots")
        assert active.findtext("snapshot_type") == "active"
        assert datetime.fromisoformat(active.findtext("date") or "").tzinfo is not None


def test_disks_with_the_names_of_their_storage_domains(server: Server) -> None:
    domains = {node.get("id"): node for node in read(server, "storagedomains")}
    for node in domains.values():
        assert (node.findtext("type"), node.findtext("external_status")) == ("data", "ok")
        assert node.findtext("storage/path") == f"/{node.findtext('name')}"
        assert all(float(node.findtext(part) or -1) >= 0 for part in ("available", "used", "committed"))
    for attachment in read(server, "vms/db1/diskattachments"):
        disk = read(server, f"disks/{attachment.find('disk').get('id')}")
        (domain,) = disk.findall("storage_domains/storage_domain")
        assert domains[domain.get("id")].findtext("name") == "data"
        sizes = {disk.findtext(part) for part in ("provisioned_size", "actual_size", "total_size")}
        assert sizes == {str(10 << 30)}
