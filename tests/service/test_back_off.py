"""Pauses double from the first to the longest, however many failures there were."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ovirt_service.back_off import BackOff


@given(st.floats(0.01, 10), st.floats(0.01, 1000), st.integers(1, 30))
def test_each_pause_is_twice_the_last_up_to_the_longest(first: float, longest: float, failures: int) -> None:
    back_off = BackOff(first, longest)
    expected = first
    for _ in range(failures - 1):
        expected *= 2
    assert back_off.pause_after(failures) == min(expected, longest)


def test_without_a_failure_there_is_no_pause() -> None:
    assert BackOff(1.0, 10.0).pause_after(0) == 0.0


def test_what_failed_for_days_is_still_tried() -> None:
    assert BackOff(1.0, 10.0).pause_after(1_000_000) == 10.0
