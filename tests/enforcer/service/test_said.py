"""What a person says is heard at once: a pause that ends does not wait for the interval."""

from __future__ import annotations

from pathlib import Path

from ovirt_placement.engine.connection.client import connect
from ovirt_placement.store.intents import Store
from ovirt_placement.store.pauses import ALL_CLUSTERS, PauseStore
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import serve
from tests.builders import APART, group, host, snapshot, vm
from tests.scenarios.stage import START, configured, daemon_of

TOO_CLOSE = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("apart", APART, "a b"))
HOUR_SECONDS = 3600


def test_the_end_of_a_pause_is_heard_long_before_the_next_look(tmp_path: Path) -> None:
    engine = Engine.from_snapshot(TOO_CLOSE, clock=START, settings=PROMPT)
    server = serve(engine)
    config = configured(tmp_path, server.api_url, {"mode": "enforce", "interval_seconds": HOUR_SECONDS})
    pauses = PauseStore(config.store.url, engine="default", patience_seconds=5)
    store = Store(config.store.url, engine="default", patience_seconds=5)
    pauses.pause(ALL_CLUSTERS, cluster_name="", reason="", set_by="somebody", seconds=None)
    now = 0.0
    with connect(config.engine) as connection, daemon_of(config, connection, lambda: now) as daemon:

        def cycle_for(seconds: float) -> None:
            nonlocal now
            until = now + seconds
            while now < until:
                step = min(max(1.0, daemon.cycle()), until - now)
                engine.advance(step)
                now += step

        cycle_for(60.0)
        assert store.open_intents() == store.history(within_seconds=HOUR_SECONDS) == ()
        pauses.resume(ALL_CLUSTERS, set_by="somebody")
        cycle_for(60.0)
    server.close()
    assert [intent.vm for intent in store.history(within_seconds=HOUR_SECONDS)] == ["a"]
    for part in (pauses, store):
        part.close()
