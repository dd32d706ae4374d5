"""Commands plan as the daemon would now: without what the engine has refused to it a moment ago."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_enforcer.on_request.of_engine import of_engine
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.store.pauses import PauseStore
from ovirt_simulator.core.faults import MigrationFault
from tests.builders import CLUSTER
from tests.enforcer.actions.migrate_vm.bench import bench


def test_a_target_that_was_refused_is_left_out_with_the_reason(tmp_path: Path) -> None:
    with bench(tmp_path) as made:
        made.engine.faults.next_migrations(MigrationFault(refuse=True), vm_id="a")
        with made.enforcing() as daemon:
            made.run(daemon, 2.0)
        found = of_engine(made.config, 60.0)
    assert found.left_out.keys() == {("a", "h2")}
    assert found.left_out["a", "h2"].startswith("the engine refused to move it to h2: ")


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
        found = of_engine(made.config, 60.0)
    plan = make_plan(found.snapshot, CLUSTER)
    assert plan.steps
    assert why in (found.not_now(plan) or "")
    assert bool(why) == (found.not_now(plan) is not None)
    assert found.not_now(replace(plan, steps=())) is None
