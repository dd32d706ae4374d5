"""Statistics of many VMs come in pages, and all of them come."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading.topology import measured_hosts, measured_vms, read_snapshot
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import serve
from tests import builders as build


@pytest.fixture(params=[0, 1, 99, 100, 101, 203])
def connection(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineConnection]:
    """An engine with this many VMs, and pages of a hundred."""
    monkeypatch.setattr("ovirt_placement.engine.reading.topology.MEASURED", 100)
    vms = (build.vm(f"vm{number:04}", "h") for number in range(request.param))
    state = build.snapshot(build.host("h", free_mb=1 << 29, memory_mb=1 << 30), *vms)
    server = serve(Engine.from_snapshot(state, clock=datetime(2026, 1, 1, tzinfo=UTC), settings=PROMPT))
    settings = EngineSettings(url=server.api_url, username="admin@internal")
    try:
        with EngineConnection(settings, {"OVIRT_PASSWORD": "password"}) as made:
            yield made
    finally:
        server.close()


def test_all_are_measured_whatever_their_number(connection: EngineConnection) -> None:
    at_once = read_snapshot(connection, statistics=True)
    assert tuple(measured_vms(connection)) == at_once.vms
    assert tuple(measured_hosts(connection)) == at_once.hosts
