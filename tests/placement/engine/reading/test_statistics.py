"""Statistics of many VMs come in pages, and all of them come."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading.topology import measured_hosts, measured_vms, read_snapshot
from tests import builders as build
from tests.placement.engine.simulated import simulated


@pytest.fixture(params=[0, 1, 99, 100, 101, 203])
def connection(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineConnection]:
    """An engine with this many VMs, and pages of a hundred."""
    monkeypatch.setattr("ovirt_placement.engine.reading.topology.MEASURED", 100)
    vms = (build.vm(f"vm{number:04}", "h") for number in range(request.param))
    state = build.snapshot(build.host("h", free_mb=1 << 29, memory_mb=1 << 30), *vms)
    with simulated(state) as (_, _, connection):
        yield connection


def test_all_are_measured_whatever_their_number(connection: EngineConnection) -> None:
    at_once = read_snapshot(connection, statistics=True)
    assert tuple(measured_vms(connection)) == at_once.vms
    assert tuple(measured_hosts(connection)) == at_once.hosts
