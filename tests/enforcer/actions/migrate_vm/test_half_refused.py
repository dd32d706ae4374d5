"""A group that is moved at once: where the engine takes some of it and refuses one, each is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from ovirt_placement.engine.connection.client import connect
from ovirt_placement.store.causes import Cause
from ovirt_placement.store.intents import IntentState, Store
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.faults import MigrationFault
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import serve
from tests.builders import TOGETHER, group, host, snapshot, vm
from tests.scenarios.stage import START, configured, daemon_of

MUST_GO = snapshot(
    host("h0"),
    host("h1"),
    *(vm(name, "h1") for name in "abc"),
    group("together", TOGETHER, "a b c"),
    group("there", vms="a b c", hosts_rule=TOGETHER, hosts="h0"),
)


@pytest.mark.system
def test_what_went_is_followed_to_its_end_and_what_did_not_is_a_refusal(tmp_path: Path) -> None:
    engine = Engine.from_snapshot(MUST_GO, clock=START, settings=PROMPT)
    engine.faults.next_migrations(MigrationFault(refuse=True), vm_id="b")
    server = serve(engine)
    config = configured(tmp_path, server.api_url, {"mode": "enforce", "interval_seconds": 30})
    now = 0.0
    with connect(config.engine) as connection, daemon_of(config, connection, lambda: now) as daemon:
        while now < 600.0:
            seconds = max(1.0, daemon.cycle())
            engine.advance(seconds)
            now += seconds
    server.close()
    store = Store(config.store.url, engine="default", patience_seconds=5)
    ended = store.history(within_seconds=1e6)
    assert store.open_intents() == ()
    store.close()
    assert [intent.state for intent in ended if intent.vm == "a"] == [IntentState.DONE]
    first_of_b = next(intent for intent in ended if intent.vm == "b")
    assert first_of_b.cause is Cause.TARGET_REFUSED
    assert engine.snapshot().vm_by_id["a"].host == "h0"
