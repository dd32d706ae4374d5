"""What the enforcer reads: all of it, however long the engine takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ovirt_enforcer.service.reading import StateReading
from ovirt_placement.inventory.client.current import DEFAULT_DEADLINE_SECONDS
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.disturbances import Disturbance
from ovirt_simulator.http.server import serve
from tests.builders import host, snapshot, vm
from tests.scenarios.stage import START, configured


@pytest.mark.nightly
def test_an_engine_that_takes_longer_than_a_person_waits_is_read_all_the_same(tmp_path: Path) -> None:
    server = serve(Engine.from_snapshot(snapshot(host("h1"), vm("a", "h1")), clock=START))
    try:
        late = DEFAULT_DEADLINE_SECONDS + 1.0
        server.disturbances.add(Disturbance(path="/vms", delay_seconds=late))
        found = StateReading(configured(tmp_path, server.api_url, {})).whole()
    finally:
        server.close()
    assert [vm.id for vm in found.vms] == ["a"]
