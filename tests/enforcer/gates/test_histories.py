"""What gates conclude from any history: cooldowns after failures in a row, and when limits let more begin."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_enforcer.gates.gate import Facts, Remembered, begun_ago, begun_within, seconds_until_fewer
from ovirt_enforcer.gates.limits import CooldownGate
from ovirt_placement.store.causes import Cause
from ovirt_placement.store.intents import Intent, IntentState
from tests.builders import CLUSTER, snapshot
from tests.enforcer.gates.judging import ENFORCE, NOON, PARTS, intent

#: How a migration ended, or that the engine refused it: then it never began.
ENDS = st.sampled_from(["done", "failed", "failed", "refused"])
FIRST = ENFORCE.cooldown_seconds


def ended(end: str, ago: float, seconds: float = 0.0) -> Intent:
    state = IntentState.DONE if end == "done" else IntentState.FAILED
    cause = Cause.TARGET_REFUSED if end == "refused" else None
    return intent(state, ago, cause=cause, updated=seconds)


def facts_of(history: tuple[Intent, ...]) -> Facts:
    return Facts(ENFORCE, snapshot(*PARTS), Remembered(history=history), (), NOON)


@given(st.lists(ENDS, min_size=1, max_size=7), st.sampled_from([0.5, 1, 2, 4, 8, 15.5, 16, 17]))
def test_a_vm_rests_the_longer_the_more_of_its_last_migrations_failed_in_a_row(
    ends: list[str], rested: float
) -> None:
    """Longer each time, up to sixteen times as long; what the engine refused counts for nothing."""
    last = rested * FIRST - 1
    history = tuple(ended(end, last + 60 * (len(ends) - at)) for at, end in enumerate(ends, 1))
    begun = [(end, one) for end, one in zip(ends, history, strict=True) if end != "refused"]
    row = 0
    for end, _ in begun:
        row = row + 1 if end == "failed" else 0
    pause = min(FIRST * 2 ** (row - 1), 16 * FIRST) if row else 0.0
    facts = facts_of(history)
    held = bool(row) and begun[-1][1].age_seconds < pause
    assert bool(CooldownGate().frozen(facts)) is held
    left = CooldownGate().seconds_left(facts, CLUSTER)
    assert left == (pytest.approx(pause - begun[-1][1].age_seconds) if held else inf)


@given(
    st.lists(st.tuples(ENDS, st.integers(0, 4000), st.integers(0, 300)), max_size=6),
    st.integers(1, 4),
)
def test_after_that_time_fewer_have_begun_lately_and_not_before(
    drawn: list[tuple[str, int, int]], limit: int
) -> None:
    intents = [ended(*one) for one in drawn]
    count = begun_within(intents, 3600)
    assert count == sum(end != "refused" and ago + seconds < 3600 for end, ago, seconds in drawn)
    left = seconds_until_fewer(intents, 3600, limit)
    assert (left == inf) is (count < limit)
    if left != inf:
        later = [begun_ago(one) + left for one in intents if one.cause is None]
        assert sum(ago < 3600 for ago in later) < count
        assert sum(ago - 1 < 3600 for ago in later) == count
