"""An enforcer reacts at once: to a new rule, and to the end of a pause."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from ovirt_placement.model import AffinityRule
from ovirt_placement.store.orders import ALL_CLUSTERS, PauseStore
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import Server
from tests.builders import APART, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.actions.bench import bench
from tests.enforcer.service.test_process import running
from tests.placement.inventory.running import running as inventory_running
from tests.proxy.running import eventually
from tests.scenarios.stage import START

#: These assertions depend on real time.

#: It hears of nothing by looking again: until then a test has long ended.
PATIENT = '[enforcer]\nmode = "enforce"\nstrategy = "greedy"\ninterval_seconds = 3600\npoll_seconds = 0.1\n'
#: How long a new rule waits for the first migration at the most, on a machine that is busy with tests.
PROMPT_SECONDS = 5.0
STATE = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"))
TOO_CLOSE = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("apart", APART, "a b"))


@pytest.fixture
def engine() -> Engine:
    return Engine.from_snapshot(STATE, clock=START, settings=PROMPT)


def part(engine: Engine) -> None:
    """Make a group that parts the two."""
    rule = AffinityRule(enabled=True, positive=False, enforcing=True)
    engine.affinity_groups.add("cluster1", name="apart", vms_rule=rule, vms=["a", "b"])


def migrating(engine: Engine) -> bool:
    return any(one.status == "migrating" for one in engine.snapshot().vms)


@pytest.mark.system
@pytest.mark.timing
@pytest.mark.parametrize("published", [False, True], ids=["the engine's events", "the inventory service"])
def test_two_vms_that_a_new_group_parts_are_parted_at_once(
    engine: Engine, server: Server, tmp_path: Path, published: bool
) -> None:
    """Each way alone: the enforcer that reads what is published asks for no events within the test."""
    how = f"{PATIENT}events_seconds = {3600 if published else 0.5}\n"
    file = write_configuration(tmp_path, server.api_url, more=how)
    with inventory_running(file) if published else nullcontext(), running(file) as daemon:
        eventually(lambda: "every rule is satisfied" in daemon.log)
        part(engine)
        began = time.monotonic()
        eventually(lambda: migrating(engine))
        took = time.monotonic() - began
        engine.advance(60)
        eventually(lambda: "done" in daemon.log)
        daemon.end()
    assert {one.host for one in engine.snapshot().vms} == {"h1", "h2"}
    assert took < PROMPT_SECONDS


def test_the_end_of_a_pause_is_heard_long_before_the_next_look(tmp_path: Path) -> None:
    settings = {"mode": "enforce", "interval_seconds": 3600}
    with bench(tmp_path, TOO_CLOSE, settings) as made, made.enforcing() as daemon:
        pauses = PauseStore(made.config.store.url, engine="default", patience_seconds=5)
        pauses.pause(ALL_CLUSTERS, cluster_name="", reason="", set_by="somebody", seconds=None)
        made.run(daemon, 60.0)
        assert made.intents() == []
        pauses.resume(ALL_CLUSTERS, set_by="somebody")
        pauses.close()
        made.run(daemon, 120.0)
        assert [intent.vm for intent in made.intents()] == ["a"]
