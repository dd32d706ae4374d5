"""How soon a cluster is read again: an engine that answers slowly is asked the more seldom for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_enforcer.service.pace import Pace
from tests.clock import Clock

#: A second is five times 0.2.
SECONDS = st.floats(0, 100) | st.sampled_from([0.0, 0.19, 0.2, 0.21, 1.0])


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=5))
def test_two_readings_are_a_second_apart_and_five_times_what_one_takes(
    looks: list[tuple[float, float]],
) -> None:
    clock = Clock(1000.0)
    pace = Pace(clock)
    assert pace.earliest == clock.now
    for takes, waits in looks:
        began = clock.now
        clock.now += takes
        pace.looked(began)
        ended = clock.now
        assert pace.look_seconds == pytest.approx(takes)
        assert pace.earliest == pytest.approx(ended + max(1.0, 5 * takes))
        clock.now += waits
        assert pace.earliest == pytest.approx(max(clock.now, ended + 1.0, ended + 5 * takes))
