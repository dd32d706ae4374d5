"""Commands plan as the daemon would now: without what the engine has refused to it a moment ago."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_enforcer.engine_state import current_gates, read_engine_state
from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_enforcer.stores import Stores
from ovirt_placement import config
from ovirt_placement.engine.connection.client import connect
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.orders import PauseStore
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import MigrationFault
from ovirt_simulator.http.server import serve
from tests.builders import CLUSTER, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.actions.bench import bench
from tests.scenarios.stage import START
from tests.stored import prepared


def test_a_target_that_was_refused_is_left_out_with_the_reason(tmp_path: Path) -> None:
    with bench(tmp_path) as made:
        made.engine.faults.next_migrations(MigrationFault(refuse=True), vm_id="a")
        with made.enforcing() as daemon:
            made.run(daemon, 2.0)
        found = read_engine_state(made.config, 60.0)
    assert found.holding.left_out.keys() == {("a", "h2")}
    assert found.holding.left_out["a", "h2"].startswith("the engine refused to move it to h2: ")


@pytest.mark.parametrize(
    ("mode", "paused", "why"),
    [("enforce", True, "storage"), ("observe", False, "observe"), ("enforce", False, "")],
)
def test_what_holds_a_plan_back_is_known_with_it(tmp_path: Path, mode: str, paused: bool, why: str) -> None:
    with bench(tmp_path, settings={"mode": mode}) as made:
        store = PauseStore(made.config.store.url, engine="default")
        if paused:
            store.pause(CLUSTER, cluster_name="blue", reason="storage", set_by="root", seconds=None)
        store.close()
        found = read_engine_state(made.config, 60.0)
    plan = make_plan(found.snapshot, CLUSTER)
    assert plan.steps
    assert why in (found.not_now(plan) or "")
    assert bool(why) == (found.not_now(plan) is not None)
    assert found.not_now(replace(plan, steps=())) is None


TAG = "ovirt-enforcer-exclude"
STATE = snapshot(host("h1"), vm("a", "h1", tags=(TAG,)), vm("b", "h1"), vm("c", "h1"))
EXCLUDED = {"a": f"a bears the tag {TAG}", "b": "b is among exclude_vms"}


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    server = serve(Engine.from_snapshot(STATE, clock=START))
    yield write_configuration(tmp_path, server.api_url, more='[enforcer]\nexclude_vms = ["b"]')
    server.close()


@contextmanager
def gates_now(path: Path) -> Iterator[Gates]:
    asked = config.load(path, {"OVIRT_PASSWORD": "password"})
    settings = asked.section("enforcer", EnforcerSettings)
    with connect(asked.engine) as connection, closing(Stores(asked, create=False)) as stores:
        yield current_gates(settings, connection, stores)


def test_without_a_store_the_configuration_and_the_tags_count(path: Path, tmp_path: Path) -> None:
    with gates_now(path) as gates:
        assert gates.frozen(STATE) == EXCLUDED
    assert not (tmp_path / "store.db").exists()


def test_with_one_what_it_remembers_counts_too(path: Path, tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=5)
    one = prepared(store, vm="c", cluster=CLUSTER, source="h2", target="h1", correlation_id="1")
    store.fail(one.id, "it broke")
    store.close()
    with gates_now(path) as gates:
        held = gates.frozen(STATE)
    assert {vm: held[vm] for vm in "ab"} == EXCLUDED
    assert held["c"] == "its migration to h1 failed (it broke); the cooldown is 600 s"
