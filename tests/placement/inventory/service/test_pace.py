"""The engine is asked often while decisions are made, and seldom while none are."""

from __future__ import annotations

from pathlib import Path

import pytest

from ovirt_placement import inventory
from ovirt_placement.inventory.service.schedule import BURST_SECONDS, ReconciliationPace
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import configured, ended, loaded, running


def test_a_decision_quickens_the_pace_for_a_while() -> None:
    pace = ReconciliationPace(5.0, max_age=0.5)
    assert pace.interval(100.0) == 5.0
    pace.asked(100.0)
    assert pace.interval(100.0) == pace.interval(99.9 + BURST_SECONDS) < 0.5
    assert pace.interval(100.0 + BURST_SECONDS) == 5.0


@pytest.mark.parametrize("took", [0.01, 0.05, 0.1, 0.15])
def test_no_decision_of_a_burst_waits_for_a_version_that_takes_a_while(took: float) -> None:
    """As old as it gets a version is when the next one is there, which is begun before by what it takes."""
    pace = ReconciliationPace(5.0, max_age=0.5)
    pace.asked(100.0)
    for _ in range(3):
        pace.published(took)
    assert pace.interval(100.0) + took < 0.5
    assert pace.interval(100.0) >= 2 * took, "half of the time is left to decisions"


def test_an_engine_that_takes_too_long_for_that_is_asked_no_more_often() -> None:
    pace = ReconciliationPace(5.0, max_age=0.5)
    pace.asked(100.0)
    at_once = pace.interval(100.0)
    pace.published(3.0)
    assert pace.interval(100.0) == at_once
    for _ in range(8):
        pace.published(0.1)
    assert pace.interval(100.0) < at_once, "it has become quick again"


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
