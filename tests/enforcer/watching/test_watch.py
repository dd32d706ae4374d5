"""The enforcer alone tells of HA reservations that do not hold any more, and that hold again: once each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ovirt_simulator.core.affinity_commands import AffinityGroupEdit
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import Server, serve
from tests.builders import cluster, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.service.test_process import Enforcer, running
from tests.pages import page_named_in, samples
from tests.proxy.running import eventually
from tests.scenarios.stage import START

#: Two hosts with a VM of 6 GiB each and a spare one: one of the three may fail.
STATE = snapshot(
    cluster("c1", name="blue", ha_reservation=True, ha_failures=1),
    *(host(name, cluster="c1", memory_mb=10240, free_mb=9000) for name in ("h1", "h2", "h3")),
    vm("a", "h1", cluster="c1", memory_mb=6144, guaranteed_mb=6144, ha=True),
    vm("b", "h2", cluster="c1", memory_mb=6144, guaranteed_mb=6144, ha=True),
    vm("big", cluster="c1", memory_mb=8192, guaranteed_mb=8192, pinned_hosts=("h3",)),
)
SETTINGS = """\
[enforcer]
interval_seconds = 0.3
events_seconds = 0.1
metrics = "127.0.0.1:0"
[enforcer.ha]
hold_seconds = 0.05
"""


def told(engine: Engine) -> list[str]:
    """The severities of our events, the oldest first."""
    events = [event for event in engine.queries.events() if event.origin == "ovirt-placement"]
    return [event.severity for event in sorted(events, key=lambda event: event.id)]


@pytest.fixture
def engine() -> Engine:
    return Engine.from_snapshot(STATE, clock=START, settings=PROMPT)


@pytest.fixture
def server(engine: Engine) -> Iterator[Server]:
    server = serve(engine)
    yield server
    server.close()


@pytest.fixture
def enforcer(server: Server, tmp_path: Path) -> Iterator[Enforcer]:
    with running(write_configuration(tmp_path, server.api_url, more=SETTINGS)) as process:
        yield process


def test_a_host_fails_and_recovers(engine: Engine, enforcer: Enforcer) -> None:
    page = page_named_in(enforcer.log)
    eventually(lambda: samples(page).get(("ovirt_enforcer_ha_safe", "blue")) == 1)
    assert samples(page)["ovirt_enforcer_ha_failures_survived", "blue"] == 1
    assert told(engine) == []
    engine.hosts.fail("h3")
    engine.advance(60)
    eventually(lambda: told(engine) == ["alert"])
    print(enforcer.log)
    print([event.description for event in engine.queries.events() if event.origin == "ovirt-placement"])
