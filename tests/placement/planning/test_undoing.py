"""The way back from a plan, as far as no rule that is satisfied now would be violated."""

from __future__ import annotations

from ovirt_placement.answers.plans.plan import kept_text
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Step
from ovirt_placement.planning.requests import Moved, Undoing, plan_back
from tests.builders import APART, CLUSTER, TOGETHER, group, host, snapshot, vm


def back(state: Snapshot, *moved: str, held: dict[str, str] | None = None) -> Undoing:
    """Take back moves that are written as `vm from to`."""
    return plan_back(state, CLUSTER, tuple(Moved(*one.split()) for one in moved), held or {})


def moves(undoing: Undoing) -> list[tuple[tuple[str, ...], str]]:
    return [(step.vms, step.target) for step in undoing.plan.steps]


def kept(undoing: Undoing, state: Snapshot) -> dict[str, str]:
    return {vm: kept_text(why, state) for vm, why in undoing.kept.items()}


def test_what_no_rule_minds_goes_back() -> None:
    state = snapshot(host("h1"), host("h2"), host("h3"), vm("a", "h2"), vm("b", "h3"), vm("c", "h3"))
    undoing = back(state, "a h1 h2", "b h1 h3")
    assert sorted(moves(undoing)) == [(("a",), "h1"), (("b",), "h1")]
    assert undoing.kept == {}
    assert undoing.plan.proven


def test_what_would_break_a_hard_rule_that_holds_stays_and_the_rest_goes_back() -> None:
    state = snapshot(
        host("h1"),
        host("h2"),
        vm("a", "h2"),
        vm("b", "h2"),
        vm("c", "h2"),
        group("pair", TOGETHER, "a b", name="the pair"),
    )
    undoing = back(state, "a h1 h2", "c h1 h2")
    assert moves(undoing) == [(("c",), "h1")]
    assert kept(undoing, state) == {"a": "it would violate affinity group the pair"}


def test_two_of_whom_only_one_may_return_stay_both() -> None:
    state = snapshot(
        host("h1"), host("h2"), host("h3"), vm("a", "h2"), vm("b", "h3"), group("rivals", APART, "a b")
    )
    undoing = back(state, "a h1 h2", "b h1 h3")
    assert moves(undoing) == []
    assert set(undoing.kept) == {"a", "b"}


def test_a_rule_that_is_violated_now_keeps_nobody_who_is_not_in_it() -> None:
    state = snapshot(
        host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), vm("c", "h2"), group("rivals", APART, "a b")
    )
    assert moves(back(state, "c h1 h2")) == [(("c",), "h1")]


def test_who_was_moved_since_or_cannot_move_or_is_held_stays() -> None:
    state = snapshot(
        host("h1"),
        host("h2"),
        host("h3"),
        host("h4", status="maintenance"),
        vm("elsewhere", "h3"),
        vm("pinned", "h2", migratable=False),
        vm("held", "h2"),
        vm("unplaced", "h2"),
        vm("down"),
        vm("home", "h1"),
    )
    undoing = back(
        state,
        "elsewhere h1 h2",
        "pinned h1 h2",
        "held h1 h2",
        "unplaced h4 h2",
        "down h1 h2",
        "gone h1 h2",
        "home h1 h2",
        held={"held": "it cools down"},
    )
    assert moves(undoing) == []
    assert kept(undoing, state) == {
        "elsewhere": "it was moved meanwhile: it is on h3",
        "pinned": "it may not be migrated automatically (pinned, or only its user may)",
        "held": "it cools down",
        "unplaced": "its former host h4 is not up",
        "down": "it is gone, down, or in another cluster",
        "gone": "it is gone, down, or in another cluster",
    }


def test_two_that_change_places_do_so_through_a_third_host() -> None:
    """Each needs the room of the other, and every state in between has room."""
    state = snapshot(
        host("h1", free_mb=100),
        host("h2", free_mb=100),
        host("h3", free_mb=5000),
        vm("a", "h2", needs_mb=4096, guaranteed_mb=4096),
        vm("b", "h1", needs_mb=4096, guaranteed_mb=4096),
    )
    undoing = back(state, "a h1 h2", "b h2 h1")
    assert undoing.kept == {}
    where = {"a": "h2", "b": "h1"}
    for step in undoing.plan.steps:
        where |= dict.fromkeys(step.vms, step.target)
    assert where == {"a": "h1", "b": "h2"}
    assert len(undoing.plan.steps) == 3


def test_where_there_is_no_room_for_the_way_back_it_is_said() -> None:
    state = snapshot(
        host("h1", free_mb=100), host("h2"), vm("a", "h2", needs_mb=4096, guaranteed_mb=4096), vm("b", "h1")
    )
    undoing = back(state, "a h1 h2")
    assert moves(undoing) == []
    assert list(undoing.kept) == ["a"]


def test_steps_are_of_the_kind_that_is_carried_out() -> None:
    state = snapshot(host("h1"), host("h2"), vm("a", "h2"))
    (step,) = back(state, "a h1 h2").plan.steps
    assert isinstance(step, Step)
    assert (step.sources, step.after) == (("h2",), ())
