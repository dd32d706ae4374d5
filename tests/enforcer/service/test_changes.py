"""What happens in an engine without an inventory service is heard of, each event once."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from ovirt_enforcer.service.changes import Changed, Changes
from ovirt_placement.engine.connection.client import connect
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import serve
from tests.builders import host, snapshot, vm
from tests.scenarios.stage import START, configured

PATIENCE_SECONDS = 30.0


@pytest.fixture
def engine() -> Engine:
    return Engine.from_snapshot(snapshot(host("h1"), vm("a")), clock=START, settings=PROMPT)


@pytest.fixture
def changes(engine: Engine, tmp_path: Path) -> Iterator[Changes]:
    server = serve(engine)
    config = configured(tmp_path, server.api_url, {})
    with connect(config.engine) as connection:
        found = Changes(config, connection, 0.05, lambda: True)
        found.watch()
        yield found
        found.close()
    server.close()


def next_of(changes: Changes) -> Changed:
    assert wait([changes.fileno()], PATIENCE_SECONDS)
    return changes.take()


def test_first_it_says_that_anything_may_have_happened_then_each_event_once(
    engine: Engine, changes: Changes
) -> None:
    assert next_of(changes).missed
    engine.vms.start("a")
    codes = [event.code for event in next_of(changes).events]
    assert codes
    engine.vms.stop("a")
    assert 33 in [event.code for event in next_of(changes).events]
    assert not changes.take().events


def test_it_can_be_woken_though_nothing_happened(changes: Changes) -> None:
    next_of(changes)
    changes.wake()
    assert next_of(changes) == Changed(published=False, events=(), missed=False)
