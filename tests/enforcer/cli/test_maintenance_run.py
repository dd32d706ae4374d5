"""`ovirt-enforcer maintenance run` refuses hosts that cannot be taken out, with the reason of the plan."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ovirt_enforcer.cli.main import main
from ovirt_placement.model import Snapshot
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import cluster, host, snapshot, vm
from tests.configuration import write_configuration

GIB = 1024
TWO = (host("h1", memory_mb=8 * GIB, free_mb=5 * GIB), host("h2", memory_mb=8 * GIB, free_mb=5 * GIB))
#: One host may fail now; while another is out, none may.
RESERVED = snapshot(cluster(ha_reservation=True), *TWO, vm("v2", "h2", ha=True))
PINNED = snapshot(*TWO, vm("v1", "h1", migratable=False))


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (RESERVED, "while it is out, v2 would not restart if h2 failed"),
        (PINNED, "v1 stays where it is: it may not be migrated automatically"),
    ],
)
def test_the_reason_is_given(
    state: Snapshot, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(serve(Engine.from_snapshot(state, clock=datetime(2026, 1, 1, tzinfo=UTC)))) as server:
        more = '[enforcer]\nmode = "enforce"\n'
        config = write_configuration(tmp_path, server.api_url, more=more)
        asked = ["h1", "--work", "nothing", "--config", str(config)]
        assert main(["maintenance", "plan", "h1", "--config", str(config)]) == 4
        planned = capsys.readouterr().out
        assert main(["maintenance", "run", *asked]) == 2
        said = capsys.readouterr().err
    assert "no round for h1: " in said
    assert why in said
    reason = said.partition("no round for h1: ")[2].partition("; ovirt-enforcer")[0]
    assert f"    - {reason}\n" in planned
