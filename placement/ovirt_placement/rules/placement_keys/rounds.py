"""Step 4: the rounds. Hosts within one band between two thresholds are equally good to the operator."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from ovirt_placement.rules.placement_keys.settings import KeySettings


@lru_cache(maxsize=64)
def thresholds(settings: KeySettings) -> tuple[Fraction, ...]:
    """What a score must exceed in each round, falling evenly from the first round to the last.

    A single round tests the last threshold, which decides whether a placement fails.
    """
    if settings.steps == 1:
        return (settings.final,)
    gap = (settings.initial - settings.final) / (settings.steps - 1)
    return tuple(settings.initial - gap * done for done in range(settings.steps))


def rounds_of(parts: Iterable[int], unit: int, to_exceed: Iterable[Fraction]) -> list[int | None]:
    """For each score the first round, from 1, whose threshold it exceeds; None if not even the last one.

    Scores are whole numbers of parts, of which `unit` make a point, and so must be the thresholds. Equal to a
    threshold is not above it.
    """
    rising = [-threshold.numerator * (unit // threshold.denominator) for threshold in to_exceed]
    found = (bisect_right(rising, -part) + 1 for part in parts)
    return [number if number <= len(rising) else None for number in found]
