"""What is said of engine and store is what the last cycle found that asked them."""

from __future__ import annotations

import logging

import pytest

from ovirt_enforcer.service.cycles import Cycles
from ovirt_enforcer.service.metrics import EnforcerMetrics
from ovirt_placement.engine.connection.client import EngineAway
from ovirt_service.errors import UserError
from tests.clock import Clock

AGAIN = "engine and store: works again"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cycles(clock: Clock, caplog: pytest.LogCaptureFixture) -> Cycles:
    caplog.set_level(logging.INFO)
    return Cycles(EnforcerMetrics(), None, clock, longest_pause=60.0)


def test_an_engine_works_again_once_it_was_asked(cycles: Cycles, caplog: pytest.LogCaptureFixture) -> None:
    cycles.failed(EngineAway("the engine is away", request_sent=False))
    cycles.ended(engine_asked=False)
    assert caplog.messages == ["engine and store: the engine is away"]
    cycles.ended(engine_asked=True)
    cycles.ended(engine_asked=True)
    assert caplog.messages[1:] == [AGAIN]


def test_a_store_works_again_that_a_cycle_has_used(cycles: Cycles, caplog: pytest.LogCaptureFixture) -> None:
    cycles.failed(UserError("the store is locked"))
    cycles.ended(engine_asked=False)
    assert caplog.messages == ["engine and store: the store is locked", AGAIN]


def test_an_engine_that_stays_away_is_asked_less_and_less_often(cycles: Cycles, clock: Clock) -> None:
    pauses = []
    for _ in range(8):
        cycles.failed(EngineAway("the engine is away", request_sent=False))
        pauses.append(cycles.pause)
        cycles.ended(engine_asked=False)  # the lease was renewed
        clock.now += cycles.pause
    assert pauses[0] < pauses[3] < pauses[-1] <= 60.0


def test_one_that_follows_says_nothing_of_the_engine(
    cycles: Cycles, caplog: pytest.LogCaptureFixture
) -> None:
    away = EngineAway("the engine is away", request_sent=False)
    cycles.failed(away)
    cycles.followed()
    assert (caplog.messages, cycles.failure) == (["engine and store: the engine is away"], None)
    cycles.failed(away)
    cycles.ended(engine_asked=True)
    assert caplog.messages[1:] == ["engine and store: the engine is away", AGAIN]


def test_one_that_follows_has_used_the_store(cycles: Cycles, caplog: pytest.LogCaptureFixture) -> None:
    cycles.failed(UserError("the store is locked"))
    cycles.followed()
    assert caplog.messages == ["engine and store: the store is locked", AGAIN]
