"""The engine is asked often while decisions are made, and seldom while none are."""

from __future__ import annotations

from pathlib import Path

from ovirt_placement import inventory
from ovirt_placement.inventory.service.larger_readings import BURST_SECONDS, ReconciliationPace
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import configured, ended, loaded, running


def test_a_decision_quickens_the_pace_for_a_while() -> None:
    pace = ReconciliationPace(5.0, max_age=0.5)
    assert pace.interval(100.0) == 5.0
    pace.asked(100.0)
    assert pace.interval(100.0) == pace.interval(99.9 + BURST_SECONDS) < 0.5
    assert pace.interval(100.0 + BURST_SECONDS) == 5.0


def test_a_decision_at_rest_costs_one_request_and_who_waits_for_a_change_none(
    engine: EngineServer, tmp_path: Path
) -> None:
    file = configured(tmp_path, engine)
    config = loaded(file)
    with running(file) as service:
        inventory.snapshot(config=config, max_age=600)
        before = len(engine.requests)
        assert not inventory.wait_for_change(0.3, config=config)
        assert len(engine.requests) == before
        inventory.snapshot(config=config, max_age=0.1, deadline=30)
        assert [request.partition("?")[0] for request in engine.requests[before:]] == ["/events"]
        ended(service)
