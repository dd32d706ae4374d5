"""A maintenance run is begun whenever it was requested: also amid a cycle of the enforcer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy

from ovirt_placement.engine.connection.client import connect
from ovirt_placement.store.enforcer.maintenance import HostPhase, Work
from tests.builders import host, snapshot, vm
from tests.enforcer.maintenance.stage import stage
from tests.scenarios.stage import daemon_of

STATE = snapshot(host("h1"), host("h2"), vm("a", "h1"))


def test_a_run_that_is_requested_between_two_readings_of_one_cycle_is_begun(tmp_path: Path) -> None:
    seen: list[str] = []

    def request(_connection: Any, _cursor: Any, statement: str, *_: object) -> None:
        """After the runs were read for the first time in a cycle, and before what is read next."""
        if "FROM maintenance_runs" in statement:
            seen.append("runs")
        elif seen == ["runs"]:
            seen.append("requested")
            played.request("h1", work=Work.NOTHING)

    with (
        stage(tmp_path, STATE) as played,
        connect(played.config.engine) as connection,
        daemon_of(played.config, connection, played.clock) as daemon,
    ):
        daemon.cycle()
        played.now = 100.0  # the cluster is due
        sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", request)
        try:
            daemon.cycle()
        finally:
            sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", request)
        assert seen[:2] == ["runs", "requested"]
        assert seen.count("runs") > 1, "that cycle has looked at the engine, and at the runs once more"
        daemon.cycle()
        assert played.run.hosts[0].phase is not HostPhase.WAITING
