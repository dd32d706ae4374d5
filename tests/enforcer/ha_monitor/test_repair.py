"""With `repair = true` the enforcer restores a violated reservation, and reports its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import serve
from tests.builders import cluster, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.ha_monitor.test_watch import SETTINGS, reported
from tests.enforcer.service.test_process import running
from tests.proxy.running import eventually
from tests.scenarios.stage import START

GIB = 1024
#: As long as nothing but `c` takes the room on h3, the VMs of h1 have homes.
STATE = snapshot(
    cluster("c1", name="blue", ha_reservation=True),
    *(
        host(name, cluster="c1", memory_mb=16 * GIB, free_mb=free * GIB)
        for name, free in (("h1", 9), ("h2", 1), ("h3", 4))
    ),
    vm("a", "h1", cluster="c1", needs_mb=4 * GIB, guaranteed_mb=4 * GIB, ha=True),
    vm("c", "h1", cluster="c1", needs_mb=3 * GIB),
)
REPAIRING = SETTINGS.replace("[enforcer]\n", '[enforcer]\nmode = "enforce"\n').replace(
    "[enforcer.ha]\n", "[enforcer.ha]\nrepair = true\n"
)


@pytest.mark.system
def test_an_alert_is_followed_by_migrations_and_by_an_all_clear(tmp_path: Path) -> None:
    engine = Engine.from_snapshot(STATE, clock=START, settings=PROMPT)
    server = serve(engine)

    def all_clear() -> bool:
        engine.advance(1)
        return reported(engine) == ["alert", "normal"]

    try:
        with running(write_configuration(tmp_path, server.api_url, more=REPAIRING)) as enforcer:
            engine.vms.migrate("c", host_id="h3")
            engine.advance(60)
            eventually(lambda: reported(engine)[:1] == ["alert"])
            eventually(all_clear)
            assert {one.name: one.host for one in engine.snapshot().vms} == {"a": "h1", "c": "h1"}
            enforcer.end()
    finally:
        server.close()
