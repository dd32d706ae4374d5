"""What exporters of metrics read: lists, and of each of their entries the parts and the statistics."""

from __future__ import annotations

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
