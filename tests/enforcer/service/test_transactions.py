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
from ovirt_placement.store.enforcer.intents import Store
from ovirt_service.daemon import Progress
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import serve
from tests.builders import host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.planners_here import PlannersHere
from tests.scenarios.stage import START
from tests.stored import prepared

QUIET = snapshot(host("h1"), host("h2"), vm("v1", "h1"), vm("v2", "h2"))
#: One for all that is read, and one in which the cycle is written down under the lease.
TRANSACTIONS = 2
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


def test_a_quiet_cycle_reads_in_one_transaction(
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


def test_reads_that_are_together_find_what_was_written_between_them(
    tmp_path: Path, asked: Counter[str]
) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    reader, writer = (Store(url, engine="default", patience_seconds=5) for _ in range(2))
    other = Store(url, engine="default", patience_seconds=6)  # with connections of its own
    with reader.reads_together():
        assert other.open_intents() == reader.open_intents() == ()
        asked.clear()
        prepared(writer, correlation_id="one")
        prepared(other, correlation_id="two")
        assert asked["transactions"] == 2
        assert {found.correlation_id for found in reader.open_intents()} == {"one", "two"}
        assert writer.history(within_seconds=60) == ()
        assert asked["transactions"] == 2
    asked.clear()
    assert len(reader.open_intents()) == 2
    assert asked["transactions"] == 1
    for store in (reader, writer, other):
        store.close()


def test_reads_after_a_rest_are_in_a_transaction_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Counter[str]
) -> None:
    """A server ends one that rests: what reads on would find the store away."""
    store = Store(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=5)
    now = 0.0
    monkeypatch.setattr("ovirt_placement.store.sql.connections.time.monotonic", lambda: now)
    with store.reads_together():
        store.open_intents()
        asked.clear()
        now = 0.9
        store.open_intents()
        assert asked["transactions"] == 0
        now = 3.0
        store.open_intents()
        assert asked["transactions"] == 1
    store.close()


def test_reads_that_are_together_follow_a_store_that_is_restored(tmp_path: Path) -> None:
    file, restored = tmp_path / "store.db", tmp_path / "restored" / "store.db"
    restored.parent.mkdir()
    kept = Store(f"sqlite:///{restored}", engine="default", patience_seconds=5)
    prepared(kept, correlation_id="kept")
    kept.close()
    store = Store(f"sqlite:///{file}", engine="default", patience_seconds=5)
    with store.reads_together():
        assert store.open_intents() == ()
        for ending in ("-wal", "-shm"):
            Path(f"{file}{ending}").unlink()
        restored.rename(file)
        assert [found.correlation_id for found in store.open_intents()] == ["kept"]
    store.close()
