"""Thresholds and the band that a score falls into, against a search round by round."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import lcm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.rules.placement_keys.judgement import rounds_of, thresholds
from ovirt_placement.rules.placement_keys.settings import KeySettings

NUMBERS = st.fractions(min_value=-300, max_value=300, max_denominator=12)


def first_round(score: Fraction, bars: tuple[Fraction, ...]) -> int | None:
    unit = lcm(score.denominator, *(bar.denominator for bar in bars))
    (found,) = rounds_of([int(score * unit)], unit, bars)
    return found


@st.composite
def settings(draw: st.DrawFn) -> KeySettings:
    final, initial = sorted((draw(NUMBERS), draw(NUMBERS)))
    return KeySettings(initial=initial, final=final, steps=draw(st.integers(1, 30)))


def test_defaults_fall_from_80_to_minus_10_in_tens() -> None:
    assert thresholds(KeySettings()) == (80, 70, 60, 50, 40, 30, 20, 10, 0, -10)


@given(settings())
def test_thresholds_fall_evenly_and_end_at_the_last(chosen: KeySettings) -> None:
    bars = thresholds(chosen)
    assert len(bars) == chosen.steps
    assert bars[-1] == chosen.final
    assert chosen.steps == 1 or bars[0] == chosen.initial
    gaps = {one - other for one, other in itertools.pairwise(bars)}
    assert len(gaps) <= 1


@given(settings(), st.data())
def test_round_is_the_first_whose_threshold_is_exceeded(chosen: KeySettings, data: st.DataObject) -> None:
    bars = thresholds(chosen)
    score = data.draw(NUMBERS | st.sampled_from(bars))
    passed = [number for number in range(1, chosen.steps + 1) if score > bars[number - 1]]
    assert first_round(score, bars) == (passed[0] if passed else None)


@pytest.mark.parametrize(("score", "found"), [(81, 1), (80, 2), (0, 10), (-9, 10), (-10, None)])
def test_equal_is_not_above(score: int, found: int | None) -> None:
    assert first_round(Fraction(score), thresholds(KeySettings())) == found


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"steps": 0}, "steps: 0 is less than 1"),
        ({"initial": Fraction(-11)}, "initial: -11 is below final, -10"),
        ({"memory_ratio": Fraction(0)}, "memory_ratio: 0 is not greater than 0"),
        ({"cpu_ratio": Fraction(-1)}, "cpu_ratio: -1 is not greater than 0"),
        ({"overhead_mb": -1}, "overhead_mb: -1 is less than 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Fraction], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        KeySettings(**wrong)


def test_settings_report_when_keyless_vms_would_be_refused() -> None:
    assert not KeySettings().refuses_keyless_vms
    assert KeySettings(final=Fraction(0)).refuses_keyless_vms
