"""A rule is repaired once it was seen violated in as many cycles as the configuration asks for."""

from __future__ import annotations

import pytest

from ovirt_enforcer.gates.people import rule_key
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.rules.violations import find_violations
from tests.builders import APART, CLUSTER, TOGETHER, group, host, snapshot, vm

from .judging import PARTS, admitted, closed, gates, plan, step

THRICE = EnforcerSettings(mode=Mode.ENFORCE, hold_cycles=3)
KEY = "vm_affinity hard g"


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_rule_is_held(count: int) -> None:
    reason = f"affinity group g was violated in {count} of 3 cycles (hold_cycles)"
    violated = {KEY: count} if count else {}
    assert closed(gates(THRICE, violated_cycles=violated)) == ("hold", reason)
    held = gates(THRICE, violated_cycles=violated).held_groups(snapshot(*PARTS))
    assert held == ({"g": reason} if count else {})


def test_a_rule_that_was_violated_long_enough_is_not() -> None:
    assert admitted(gates(THRICE, violated_cycles={KEY: 3}))
    assert gates(THRICE, violated_cycles={KEY: 3}).held_groups(snapshot(*PARTS)) == {}
    assert admitted(gates())


@pytest.mark.parametrize("cycles", [(1, 3), (3, 1), (2, 2)])
def test_of_both_halves_of_a_group_the_longer_violated_one_counts(cycles: tuple[int, int]) -> None:
    asked = gates(THRICE, violated_cycles=dict(zip((KEY, "host_affinity soft g"), cycles, strict=True)))
    assert (asked.held_groups(snapshot(*PARTS)) == {}) is (max(cycles) == 3)


def test_what_makes_room_waits_as_well() -> None:
    room, repairs = step("b", groups=""), step("a", after=(0,))
    asked = gates(THRICE, violated_cycles={KEY: 1})
    assert closed(asked, of=room, within=plan(room, repairs))[0] == "hold"


def test_the_key_of_a_rule_names_its_groups_and_stays_the_same() -> None:
    parts = (host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), vm("c", "h1"), vm("d", "h2"))
    groups = (group("g", APART, "a b"), group("k", TOGETHER, "b c"), group("m", TOGETHER, "c d"))
    keys = {rule_key(one) for one in find_violations(snapshot(*parts, *groups), CLUSTER)}
    assert keys == {KEY, "vm_affinity hard k m"}
    again = {rule_key(one) for one in find_violations(snapshot(*parts, *reversed(groups)), CLUSTER)}
    assert again == keys
