"""Step 4: the rounds. Hosts within one band between two thresholds are equally good to the operator."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction

from ovirt_placement.rules.placement_keys.settings import Settings


def thresholds(settings: Settings) -> tuple[Fraction, ...]:
    """What a score must exceed in each round, falling evenly from the first round to the last.

    A single round tests the last threshold, the bar that decides whether a placement fails.
    """
    if settings.steps == 1:
        return (settings.final,)
    gap = (settings.initial - settings.final) / (settings.steps - 1)
    return tuple(settings.initial - gap * done for done in range(settings.steps))


def round_of(score: Fraction, bars: Sequence[Fraction]) -> int | None:
    """The first round, from 1, whose threshold a score exceeds; None if it exceeds not even the last.

    Equal to a threshold is not above it.
    """
    points, unit = score.as_integer_ratio()
    passed = bisect_left(bars, True, key=lambda bar: points * bar.denominator > bar.numerator * unit)
    return passed + 1 if passed < len(bars) else None
