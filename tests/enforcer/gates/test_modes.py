"""The mode of a step is the strictest of the engine's, its cluster's and those of what it repairs."""

from __future__ import annotations

from typing import Any

import pytest

from ovirt_enforcer.settings import EnforcerSettings, Mode
from tests.builders import APART, CLUSTER, cluster, group, snapshot, vm

from .judging import PARTS, admitted, closed, gates, plan, step

OBSERVE, APPROVE, ENFORCE = Mode.OBSERVE, Mode.APPROVE, Mode.ENFORCE
NAMED = (*PARTS[:-1], cluster(name="blue"), group("g", APART, "a b", name="pair"))


def modes(mode: Mode = ENFORCE, **more: Any) -> EnforcerSettings:
    return EnforcerSettings(mode=mode, **more)


def test_nothing_passes_before_the_configuration_says_so() -> None:
    reason = 'ovirt-enforcer is in observe mode: nothing is migrated; set mode = "enforce" in [enforcer]'
    assert closed(gates(EnforcerSettings())) == ("mode", reason)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (modes(clusters={"blue": OBSERVE}), "cluster blue is in mode observe"),
        (modes(clusters={CLUSTER: OBSERVE}), "cluster blue is in mode observe"),
        (modes(clusters={"*": OBSERVE}), "cluster blue is in mode observe"),
        (modes(clusters={"*": OBSERVE, "blue": ENFORCE}), None),
        (modes(clusters={"red": OBSERVE}), None),
        (modes(groups={"pair": OBSERVE}), "affinity group pair is in mode observe"),
        (modes(groups={"g": OBSERVE}), "affinity group pair is in mode observe"),
        (modes(groups={"*": OBSERVE}), "affinity group pair is in mode observe"),
        (modes(groups={"*": OBSERVE, "pair": ENFORCE}), None),
        (modes(groups={"other": OBSERVE}), None),
        (modes(clusters={"blue": OBSERVE}, groups={"pair": ENFORCE}), "cluster blue is in mode observe"),
        (
            modes(clusters={"blue": ENFORCE}, groups={"pair": OBSERVE}),
            "affinity group pair is in mode observe",
        ),
    ],
)
def test_the_strictest_mode_counts(settings: EnforcerSettings, why: str | None) -> None:
    if why is None:
        assert admitted(gates(settings), *NAMED)
    else:
        assert closed(gates(settings), *NAMED) == ("mode", why)


def test_no_mode_of_a_cluster_or_group_is_less_strict_than_that_of_the_engine() -> None:
    lenient = {"clusters": {"*": ENFORCE}, "groups": {"*": ENFORCE}}
    assert closed(gates(modes(OBSERVE, **lenient)), *NAMED)[0] == "mode"
    assert closed(gates(modes(APPROVE, **lenient)), *NAMED)[0] == "approval"


def test_a_step_that_repairs_nothing_of_a_group_is_none_of_its() -> None:
    settings = modes(groups={"other": OBSERVE})
    assert admitted(gates(settings), of=step(groups="g other", repairs=("g",)))
    assert closed(gates(settings), of=step(groups="g other", repairs=("g", "other")))[0] == "mode"
    assert closed(gates(settings), of=step(groups="g other", repairs=()))[0] == "mode"


def test_what_makes_room_counts_by_what_it_makes_room_for() -> None:
    parts = (*PARTS, vm("c", "h1"), vm("d", "h1"))
    room = step("c", groups="")
    aside = step("d", groups="", after=(0,))
    observed = step("a", after=(1,))
    free = step("b", groups="k", after=(1,))
    settings = modes(groups={"g": OBSERVE})
    assert closed(gates(settings), *parts, of=room, within=plan(room, aside, observed))[0] == "mode"
    assert admitted(gates(settings), *parts, of=room, within=plan(room, aside, observed, free))
    unconcerned = step("b", groups="k")
    useless = plan(room, aside, observed, unconcerned)
    assert closed(gates(settings), *parts, of=room, within=useless)[0] == "mode"
    assert admitted(gates(settings), *parts, of=room)


def test_the_planner_knows_of_groups_that_are_only_observed() -> None:
    state = snapshot(*NAMED)
    why = {"g": "affinity group pair is in mode observe"}
    assert gates(modes(groups={"pair": OBSERVE})).held_groups(state) == why
    assert gates(modes(groups={"pair": APPROVE})).held_groups(state) == {}
    assert gates(modes(OBSERVE, groups={"pair": OBSERVE})).held_groups(state) == {}
