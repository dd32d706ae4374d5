"""The engine's clock: one that differs is a fault, one that runs fast is a simulated engine's."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

import pytest

from ovirt_placement.answers.doctor.engine import ClockReading, is_simulated
from ovirt_simulator.core.engine import Engine
from tests.placement.cli.doctor.examining import EMPTY
from tests.placement.cli.live_engine import Starting
from tests.repeating import repeating


def passing(engine: Engine, times: float) -> AbstractContextManager[None]:
    """Let the engine's time pass this many times as fast as ours."""
    last = time.monotonic()

    def pass_time() -> None:
        nonlocal last
        now = time.monotonic()
        engine.advance((now - last) * times)
        last = now

    return repeating(pass_time, every=0.02)


@pytest.mark.system
def test_a_simulated_engine_s_fast_clock_is_reported_and_no_fault(starting: Starting) -> None:
    with (
        starting(EMPTY, clock=datetime.now(UTC) + timedelta(hours=1)) as live,
        passing(live.engine, 20.0),
    ):
        found = live.data(1, "doctor")
    assert [each["kind"] for each in found["findings"]] == ["no_inventory"]
    (hint,) = found["hints"]
    assert "times as fast as this one, as only a simulated engine's does" in hint


def test_a_slow_answer_makes_no_clock_fast() -> None:
    """The engine's time may be of any moment between request and answer."""
    first, second = ClockReading(100.0, 10.0, unsure=3.0), ClockReading(106.0, 11.0, unsure=3.0)
    assert not is_simulated(first, second)
    assert is_simulated(ClockReading(100.0, 10.0, unsure=0.1), ClockReading(120.0, 11.0, unsure=0.1))
