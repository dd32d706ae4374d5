"""Gates that hold single VMs: the planner is notified of them, and a step that moves one does not pass."""

from __future__ import annotations

import pytest

from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.gates.gate import HOUR_SECONDS
from ovirt_placement.store.causes import Cause
from ovirt_placement.store.intents import Intent, IntentState
from tests.builders import snapshot

from .judging import ENFORCE, PARTS, STEP, admitted, closed, gates, intent, plan, step

FAILED, DONE = IntentState.FAILED, IntentState.DONE


def refused(age: float, error: str) -> Intent:
    return intent(FAILED, age, error=error, cause=Cause.TARGET_REFUSED)


@pytest.mark.parametrize(
    ("history", "holder"),
    [
        ([intent(FAILED, 599)], "cooldown"),
        ([intent(FAILED, 601)], None),
        ([intent(FAILED, 700), intent(FAILED, 601)], "cooldown"),
        ([intent(FAILED, 1300), intent(FAILED, 1201)], None),
        ([intent(FAILED, 700), intent(DONE, 601)], None),
        ([intent(FAILED, 10, cause=Cause.NEVER_ASKED)], None),
        ([refused(10, "no room")], None),
        (
            [
                intent(FAILED, 700),
                intent(FAILED, 601),
                refused(9, "no room"),
            ],
            "cooldown",
        ),
        (
            [refused(10, "VM a is being backed up, backup 7")],
            "backup",
        ),
        ([refused(601, "VM a is being backed up, backup 7")], None),
        (
            [
                refused(70, "backup"),
                refused(9, "room"),
            ],
            None,
        ),
        ([intent(DONE, 119)], "just_moved"),
        ([intent(DONE, 121)], None),
        ([intent(DONE, 119), refused(9, "no room")], "just_moved"),
        ([intent(DONE, HOUR_SECONDS - 1)] * 6, "vm_limit"),
        ([intent(DONE, HOUR_SECONDS - 1)] * 5, None),
        ([intent(DONE, HOUR_SECONDS + 1)] * 6, None),
        ([intent(DONE, 900)] * 6 + [intent(FAILED, 1)], "cooldown"),
    ],
)
def test_a_vm_rests_after_failures_after_a_move_and_after_many(
    history: list[Intent], holder: str | None
) -> None:
    asked = gates(history=tuple(history))
    held = asked.frozen(snapshot(*PARTS))
    if holder is None:
        assert held == {}
        assert admitted(asked)
    else:
        assert closed(asked) == (holder, held["a"])


def test_the_reasons_name_the_target_the_error_and_the_limit() -> None:
    state = snapshot(*PARTS)
    assert gates(history=(intent(FAILED, 1),)).frozen(state) == {
        "a": "its migration to h2 failed (it broke); the cooldown is 600 s"
    }
    assert gates(history=(intent(DONE, 1),)).frozen(state) == {"a": "it came to h2 less than 120 s ago"}
    assert gates(history=(intent(DONE, 200),) * 7).frozen(state) == {
        "a": "migrated 7 times in the last hour, as often as vm_migrations_per_hour allows"
    }
    assert gates(history=(refused(1, "a backup runs"),)).frozen(state) == {
        "a": "the engine refused, since it is being backed up; it is asked again after 600 s"
    }


def test_the_longest_cooldown_lasts_as_long_as_the_vm_keeps_failing() -> None:
    longest = 16 * ENFORCE.cooldown_seconds
    ages = [longest - 1 + number * (longest + ENFORCE.interval_seconds) for number in range(8)]
    remembered = [age for age in ages if age < Gates.reach_seconds(ENFORCE)]
    history = tuple(intent(FAILED, age) for age in reversed(remembered))
    held = gates(history=history).frozen(snapshot(*PARTS))
    assert "the cooldown is 9600 s" in held["a"]


def test_what_a_plan_has_parked_it_may_take_on_at_once() -> None:
    parked = intent(DONE, 5, source="h3", target="h1")
    there, on = step(source="h3", target="h1", groups="", after=()), STEP
    state, asked = snapshot(*PARTS), gates(history=(parked,))
    assert closed(asked, of=on) == ("just_moved", "it came to h1 less than 120 s ago")
    assert asked.frozen(state, plan(on)) != {}
    assert asked.frozen(state, plan(there, on)) == {}
    assert admitted(asked, of=on, within=plan(there, on))
