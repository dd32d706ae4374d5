"""What a cycle asks of the store: a server is a round trip away, and each transaction is three of them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from ovirt_enforcer.service import process
from ovirt_enforcer.service.process import Service
from ovirt_placement import config
from ovirt_placement.engine.connection.client import connect
from ovirt_service.daemon import Progress
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import serve
from tests.builders import host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.planners_here import PlannersHere
from tests.scenarios.stage import START

QUIET = snapshot(host("h1"), host("h2"), vm("v1", "h1"), vm("v2", "h2"))
TRANSACTIONS = 32
STATEMENTS = 33


@pytest.fixture
def asked() -> Iterator[Counter[str]]:
    """What this thread has asked of stores; the inventory reads them in threads of its own."""
    found, here = Counter[str](), threading.get_ident()

    def counting(kind: str) -> Callable[..., None]:
        def count(*_: Any) -> None:
            found[kind] += threading.get_ident() == here

        return count

    listening = (("begin", counting("transactions")), ("before_cursor_execute", counting("statements")))
    for name, count in listening:
        sqlalchemy.event.listen(sqlalchemy.Engine, name, count)
    yield found
    for name, count in listening:
        sqlalchemy.event.remove(sqlalchemy.Engine, name, count)


def test_a_quiet_cycle_asks_little_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Counter[str]
) -> None:
    monkeypatch.setenv("OVIRT_PASSWORD", "password")
    monkeypatch.setattr(process, "PlannerProcesses", PlannersHere)
    server = serve(Engine.from_snapshot(QUIET, clock=START, settings=PROMPT))
    silent = "[enforcer.notifications.engine]\nkinds = []\n"
    loaded = config.load(write_configuration(tmp_path, server.api_url, more=silent))
    with connect(loaded.engine) as connection:
        service = Service(loaded, connection, Progress(60.0), stopping=lambda: False)
        for _ in range(2):
            asked.clear()
            service._daemon.cycle()
            service._daemon.wake_all()
            service._daemon._clusters["cluster1"].retry_state.due = 0.0
        service.close()
    server.close()
    assert asked["transactions"] <= TRANSACTIONS
    assert 0 < asked["statements"] <= STATEMENTS
