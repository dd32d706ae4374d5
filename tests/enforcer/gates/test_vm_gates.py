"""Gates that hold single VMs: the planner is told of them, and a step that moves one does not pass."""

from __future__ import annotations

import pytest

from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.gates.history import HOUR_SECONDS, NEVER_ASKED
from ovirt_placement.store.intents import Intent, IntentState
from tests.builders import snapshot

from .judging import ENFORCE, PARTS, closed, intent

FAILED, DONE = IntentState.FAILED, IntentState.DONE


@pytest.mark.parametrize(
    ("history", "holder"),
    [
        ([intent(FAILED, 599)], "cooldown"),
        ([intent(FAILED, 601)], None),
        ([intent(FAILED, 700), intent(FAILED, 601)], "cooldown"),
        ([intent(FAILED, 1300), intent(FAILED, 1201)], None),
        ([intent(FAILED, 700), intent(DONE, 601)], None),
        ([intent(FAILED, 10, error=NEVER_ASKED)], None),
        ([intent(FAILED, age) for age in range(9790, 9580, -10)], "cooldown"),
        ([intent(FAILED, age) for age in range(9900, 9600, -10)], None),
        ([intent(DONE, HOUR_SECONDS - 1)] * 6, "vm_limit"),
        ([intent(DONE, HOUR_SECONDS - 1)] * 5, None),
        ([intent(DONE, HOUR_SECONDS + 1)] * 6, None),
        ([intent(DONE, 900)] * 6 + [intent(FAILED, 1)], "cooldown"),
    ],
)
def test_a_vm_rests_after_failures_and_after_many_migrations(
    history: list[Intent], holder: str | None
) -> None:
    gates = Gates(ENFORCE, history, ())
    held = gates.held(snapshot(*PARTS))
    if holder is None:
        assert held == {}
    else:
        assert closed(gates) == (holder, held["a"])


def test_the_reasons_name_the_target_the_error_and_the_limit() -> None:
    failed, often = Gates(ENFORCE, [intent(FAILED, 1)], ()), Gates(ENFORCE, [intent(DONE, 1)] * 7, ())
    assert failed.held(snapshot(*PARTS)) == {
        "a": "its migration to h2 failed (it broke); the cooldown is 600 s"
    }
    assert often.held(snapshot(*PARTS)) == {
        "a": "migrated 7 times in the last hour, as often as vm_migrations_per_hour allows"
    }


def test_the_longest_cooldown_lasts_as_long_as_the_vm_keeps_failing() -> None:
    longest = 16 * ENFORCE.cooldown_seconds
    ages = [longest - 1 + number * (longest + ENFORCE.interval_seconds) for number in range(9)]
    remembered = [age for age in ages if age < Gates.reach_seconds(ENFORCE)]
    history = [intent(FAILED, age) for age in reversed(remembered)]
    assert "the cooldown is 9600 s" in Gates(ENFORCE, history, ()).held(snapshot(*PARTS))["a"]
