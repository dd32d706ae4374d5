"""The time between tries to start workers grows with each failure in a row, and with nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ovirt_scheduler_proxy.pool import FIRST_SECONDS, LONGEST_SECONDS, NextTry


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 30)), max_size=40))
def test_each_failure_in_a_row_doubles_the_delay(events: list[tuple[bool, float]]) -> None:
    now = [1000.0]
    next_try = NextTry(lambda: now[0])
    due, row = now[0], 0
    for failed, pause in events:
        now[0] += pause
        assert (next_try.remaining == 0) == (now[0] >= due)
        if not failed:
            next_try.succeeded()
            due, row = now[0], 0
        elif now[0] < due:
            assert next_try.failed() is None, "it belongs to the failure before"
        else:
            expected = min(LONGEST_SECONDS, FIRST_SECONDS * 2**row)
            assert next_try.failed() == expected
            due, row = now[0] + expected, row + 1
