"""What people ask and order: as the enforcer that leads would now, whatever the file says now."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.memory import Stores, current_gates, read_engine_state
from ovirt_enforcer.orders import check_acts, check_running
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement import config as configuration
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import connect
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.orders import PauseStore
from ovirt_placement.store.sql.connections import Fault
from ovirt_service.errors import UserError
from ovirt_simulator.core.backend import MigrationFault
from ovirt_simulator.http.server import Server
from tests.builders import CLUSTER, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.actions.bench import bench
from tests.enforcer.stand_ins import lead
from tests.placement.store.conftest import Opening
from tests.stored import prepared

OBSERVES = 'ovirt-enforcer is in observe mode: set mode = "approve" in [enforcer], and restart it'


def written(folder: Path, more: str = "") -> Config:
    return configuration.load(write_configuration(folder, "http://127.0.0.1:9/ovirt-engine/api", more=more))


def refusal(folder: Path, mode: str | None) -> str | None:
    """Why orders are refused on a machine whose file says this; None if they are taken."""
    config = written(folder, "" if mode is None else f'[enforcer]\nmode = "{mode}"\n')
    try:
        check_acts(config, Mode.APPROVE)
    except UserError as error:
        return str(error)
    return None


@pytest.mark.parametrize(("mode", "found"), [(None, OBSERVES), ("observe", OBSERVES), ("approve", None)])
def test_where_none_leads_the_file_counts(tmp_path: Path, mode: str | None, found: str | None) -> None:
    assert refusal(tmp_path, mode) == found


@pytest.mark.parametrize("mode", [None, "observe", "enforce"])
def test_where_one_leads_its_mode_counts(tmp_path: Path, mode: str | None) -> None:
    lead(tmp_path, EnforcerSettings(mode=Mode.OBSERVE))
    assert refusal(tmp_path, mode) == OBSERVES
    lead(tmp_path, EnforcerSettings(mode=Mode.ENFORCE))
    assert refusal(tmp_path, mode) is None


def test_where_one_led_that_cannot_write_any_more_that_is_said(
    tmp_path: Path, opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = written(tmp_path)
    with pytest.raises(UserError, match="no enforcer runs for engine default: start it"):
        check_running(config)
    lead(tmp_path, EnforcerSettings(mode=Mode.ENFORCE))
    check_running(config)
    opening(LeaseStore).release(1)
    full = Fault("no room is left on its file system", "make room there")
    monkeypatch.setattr("ovirt_placement.store.sql.connections.find_file_system_fault", lambda path: full)
    with pytest.raises(UserError, match="none leads and cannot write the store: no room is left") as refused:
        check_running(config)
    assert "no enforcer runs" not in str(refused.value)


def test_a_target_that_was_refused_is_left_out_with_the_reason(tmp_path: Path) -> None:
    with bench(tmp_path) as made:
        made.engine.faults.expect(MigrationFault(refuse=True), identity="a")
        with made.enforcing() as daemon:
            made.run(daemon, 2.0)
        found = read_engine_state(made.config, 60.0)
    assert found.holding.left_out.keys() == {("a", "h2")}
    assert found.holding.left_out["a", "h2"].startswith("the engine refused to move it to h2: ")


@pytest.mark.parametrize(
    ("mode", "paused", "why"),
    [("enforce", True, "storage"), ("observe", False, "observe"), ("enforce", False, "")],
)
def test_what_holds_a_plan_back_is_known_with_it(
    tmp_path: Path, opening: Opening, mode: str, paused: bool, why: str
) -> None:
    if paused:
        pause = {"cluster_name": "blue", "reason": "storage", "set_by": "root"}
        opening(PauseStore).pause(CLUSTER, seconds=None, **pause)
    with bench(tmp_path, settings={"mode": mode}) as made:
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
def gates(server: Server, tmp_path: Path) -> Callable[[], Gates]:
    file = write_configuration(tmp_path, server.api_url, more='[enforcer]\nexclude_vms = ["b"]')
    asked = configuration.load(file, {"OVIRT_PASSWORD": "password"})

    def now() -> Gates:
        with connect(asked.engine) as connection, closing(Stores(asked, create=False)) as stores:
            return current_gates(asked.section("enforcer", EnforcerSettings), connection, stores)

    return now


def test_without_a_store_the_configuration_and_the_tags_count(
    gates: Callable[[], Gates], tmp_path: Path
) -> None:
    assert gates().frozen(STATE) == EXCLUDED
    assert not (tmp_path / "store.db").exists()


def test_with_one_what_it_remembers_counts_too(gates: Callable[[], Gates], opening: Opening) -> None:
    store = opening(Store)
    store.fail(prepared(store, "c", cluster=CLUSTER, source="h2", target="h1").id, "it broke")
    remembered = {"c": "its migration to h1 failed (it broke); the cooldown is 600 s"}
    assert gates().frozen(STATE) == {**EXCLUDED, **remembered}
