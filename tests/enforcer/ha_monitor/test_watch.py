"""The enforcer alone reports HA reservations that do not hold any more, and that hold again: once each."""

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
    *(
        host(name, cluster="c1", memory_mb=10240, free_mb=free)
        for name, free in (("h1", 3500), ("h2", 3500), ("h3", 9600))
    ),
    vm("a", "h1", cluster="c1", needs_mb=6144, guaranteed_mb=6144, ha=True),
    vm("b", "h2", cluster="c1", needs_mb=6144, guaranteed_mb=6144, ha=True),
    vm("big", cluster="c1", needs_mb=8192, guaranteed_mb=8192, pinned_hosts=("h3",)),
)
SETTINGS = """\
[enforcer]
interval_seconds = 0.3
events_seconds = 0.1
metrics = "127.0.0.1:0"
[enforcer.ha]
hold_seconds = 0.05
"""


def reported(engine: Engine) -> list[str]:
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


def is_safe(enforcer: Enforcer, expected: bool) -> None:
    page = page_named_in(enforcer.log)
    eventually(lambda: samples(page).get(("ovirt_placement_enforcer_ha_safe", "blue")) == expected)


def descriptions(engine: Engine) -> list[str]:
    events = [event for event in engine.queries.events() if event.origin == "ovirt-placement"]
    return [event.description or "" for event in sorted(events, key=lambda event: event.id)]


@pytest.mark.system
def test_hosts_that_fail_and_return_a_rule_and_a_full_host_are_reported_once_each(
    engine: Engine, enforcer: Enforcer
) -> None:
    is_safe(enforcer, True)
    found = samples(page_named_in(enforcer.log))
    assert found["ovirt_placement_enforcer_ha_failures_survived", "blue"] == 1
    assert found["ovirt_placement_enforcer_ha_vms_without_home", "blue"] == 0
    assert reported(engine) == []

    engine.hosts.deactivate("h3")
    engine.advance(60)
    eventually(lambda: reported(engine) == ["alert"])
    (event,) = descriptions(engine)
    assert "if host h1 failed, no home would be left for 1 VM (6144 MiB): a" in event
    assert "if host h2 failed, no home would be left for 1 VM (6144 MiB): b" in event
    engine.hosts.activate("h3")
    engine.advance(60)
    eventually(lambda: reported(engine) == ["alert", "normal"])

    edit = {
        "name": "here",
        "hosts_rule": {"enabled": True, "positive": True, "enforcing": True},
        "vms": ["a"],
        "hosts": ["h1"],
    }
    group = engine.affinity_groups.add("c1", msgspec.convert(edit, AffinityGroupEdit))
    eventually(lambda: reported(engine) == ["alert", "normal", "alert"])
    assert "if host h1 failed" in descriptions(engine)[-1]
    assert "if host h2 failed" not in descriptions(engine)[-1]
    engine.affinity_groups.remove(group.id)
    eventually(lambda: reported(engine) == ["alert", "normal"] * 2)

    engine.vms.start("big")
    engine.advance(60)
    eventually(lambda: reported(engine) == [*["alert", "normal"] * 2, "alert"])
    engine.vms.stop("big")
    engine.advance(60)
    eventually(lambda: reported(engine) == ["alert", "normal"] * 3)
    is_safe(enforcer, True)
    assert reported(engine) == ["alert", "normal"] * 3
    enforcer.end()
