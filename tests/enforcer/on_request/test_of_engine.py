"""Commands plan as the daemon would now: without what the engine has refused to it a moment ago."""

from __future__ import annotations

from pathlib import Path

from ovirt_enforcer.on_request.of_engine import of_engine
from ovirt_simulator.core.faults import MigrationFault
from tests.enforcer.actions.migrate_vm.bench import bench


def test_a_target_that_was_refused_is_left_out_with_the_reason(tmp_path: Path) -> None:
    with bench(tmp_path) as made:
        made.engine.faults.next_migrations(MigrationFault(refuse=True), vm_id="a")
        with made.enforcing() as daemon:
            made.run(daemon, 2.0)
        found = of_engine(made.config, 60.0)
    assert found.left_out.keys() == {("a", "h2")}
    assert found.left_out["a", "h2"].startswith("the engine refused to move it to h2: ")
