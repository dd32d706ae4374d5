"""What of a plan may run at once, and what becomes of the rest when a step ends otherwise than it should."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_enforcer.actions.migrate_vm.under_way import UnderWay
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan, Step
from ovirt_placement.store.intents import Intent, IntentState
from tests.builders import APART, CLUSTER, TOGETHER, group, host, snapshot, vm

STATE = snapshot(
    host("h1"),
    host("h2"),
    host("h3"),
    vm("a", "h1"),
    vm("b", "h2"),
    vm("c", "h3"),
    vm("d", "h1"),
    group("all", TOGETHER, "a b c"),
)


def step(name: str, source: str, target: str, *after: int, repairs: tuple[str, ...] = ()) -> Step:
    return Step(vms=(name,), sources=(source,), target=target, groups=("all",), repairs=repairs, after=after)


PLAN = Plan(
    cluster=CLUSTER,
    strategy="greedy",
    steps=(
        step("d", "h1", "h2"),
        step("b", "h2", "h1", 0),
        step("c", "h3", "h1", repairs=("all",)),
    ),
)


def end(under_way: UnderWay, place: int, state: IntentState = IntentState.DONE) -> None:
    facts: dict[str, Any] = dict.fromkeys(("source", "memory_mb", "error", "fingerprint"), None)
    ended = under_way.plan.steps[place]
    under_way.end(
        Intent(
            **facts,
            id=1,
            vm=ended.vms[0],
            cluster=CLUSTER,
            target=ended.target,
            correlation_id="c",
            state=state,
            created=0.0,
            updated=0.0,
            age_seconds=0.0,
            plan=under_way.plan.id,
            step=place + 1,
        )
    )


def at(**places: str) -> Snapshot:
    vms = tuple(replace(one, host=places.get(one.id, one.host)) for one in STATE.vms)
    return replace(STATE, vms=vms)


def test_what_waits_for_nothing_may_begin_and_the_rest_once_that_is_done() -> None:
    under_way = UnderWay(PLAN)
    assert list(under_way.ready()) == [0, 2]
    under_way.begin(0)
    under_way.begin(2)
    assert list(under_way.ready()) == []
    end(under_way, 0)
    assert list(under_way.ready()) == [1]


def test_what_waits_for_a_failed_step_is_given_up_and_the_rest_goes_on() -> None:
    under_way = UnderWay(PLAN)
    under_way.begin(0)
    end(under_way, 0, IntentState.FAILED)
    assert list(under_way.ready()) == [2]


def test_a_rule_is_held_against_what_several_steps_repair_together_once_all_are_done() -> None:
    under_way = UnderWay(PLAN)
    under_way.begin(2)
    end(under_way, 2)
    assert under_way.prove(at(c="h1")) == ()
    for place in (0, 1):
        under_way.begin(place)
        end(under_way, place)
    assert not under_way.over
    assert under_way.prove(at(c="h1")) == ("all",)


def test_it_is_over_once_all_is_done_and_proven() -> None:
    under_way = UnderWay(PLAN)
    for place in (0, 2, 1):
        under_way.begin(place)
        end(under_way, place)
    assert not under_way.over
    assert under_way.prove(at(b="h1", c="h1", d="h2")) == ()
    assert under_way.over


def test_nothing_is_left_out_as_long_as_it_starts_where_vms_are_and_leads_where_it_said() -> None:
    assert UnderWay(PLAN).leave_out(STATE, frozenset()) == set()


@pytest.mark.parametrize(("held", "place"), [({"c"}, {}), (set(), {"c": "h2"}), (set(), {"a": "h3"})])
def test_with_what_no_longer_fits_all_is_left_out_that_was_for_it(
    held: set[str], place: dict[str, str]
) -> None:
    under_way = UnderWay(PLAN)
    assert under_way.leave_out(at(**place), held) == {0, 1, 2}
    assert under_way.over


def test_what_has_to_do_with_something_else_goes_on() -> None:
    other = Step(vms=("x",), sources=("h1",), target="h3", groups=("pair",), repairs=("pair",))
    state = snapshot(
        *STATE.hosts,
        *STATE.vms,
        vm("x", "h1"),
        vm("y", "h1"),
        *STATE.affinity_groups,
        group("pair", APART, "x y"),
    )
    under_way = UnderWay(replace(PLAN, steps=(*PLAN.steps, other)))
    assert under_way.leave_out(state, {"c"}) == {0, 1, 2}
    assert list(under_way.ready()) == [3]


def test_a_step_whose_migration_somebody_else_ended_is_given_up() -> None:
    under_way = UnderWay(PLAN)
    under_way.begin(0)
    assert under_way.lose_all_but([])
    assert list(under_way.ready()) == [2]
