"""In mode approve a person's word is needed: for this plan and no other, and not for ever."""

from __future__ import annotations

from typing import Any

import pytest

from ovirt_enforcer.gates.people import moves
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.planning.plan import Plan
from ovirt_placement.store.approvals import Approval
from ovirt_placement.store.causes import Cause
from ovirt_placement.store.intents import IntentState
from tests.builders import CLUSTER, host, snapshot, vm

from .judging import PARTS, admitted, closed, gates, intent, plan, step

APPROVE = EnforcerSettings(mode=Mode.APPROVE)
FIRST, SECOND = step("a"), step("c", "h1", "h3", groups="k")
BOTH = plan(FIRST, SECOND)
WORLD = (*PARTS, host("h3"), vm("c", "h1"))


def word(of: Plan = BOTH, age: float = 100.0, **fields: Any) -> Approval:
    defaults: dict[str, Any] = {"cluster": CLUSTER, "set_by": "eve", "set_at": 0.0, "age_seconds": age}
    return Approval(plan=of.id, moves=moves(of), **{**defaults, **fields})


def wants(of: Plan) -> str:
    return f'ovirt-enforcer is in approve mode: "ovirt-enforcer approve {of.id}" lets it'


def test_a_plan_waits_for_a_word() -> None:
    assert closed(gates(APPROVE), *WORLD, of=FIRST, within=BOTH) == ("approval", wants(BOTH))
    assert closed(gates(APPROVE), *WORLD, of=FIRST) == ("approval", wants(plan(FIRST)))


def test_each_step_of_the_approved_plan_passes() -> None:
    for one in BOTH.steps:
        assert admitted(gates(APPROVE, approvals=(word(),)), *WORLD, of=one, within=BOTH)


@pytest.mark.parametrize("how", ["done", "failed", "refused", "under way"])
def test_an_approval_is_used_up_step_by_step(how: str) -> None:
    state = {"done": IntentState.DONE, "under way": IntentState.ACCEPTED}.get(how, IntentState.FAILED)
    used = intent(state, 50, cause=Cause.TARGET_REFUSED if how == "refused" else None)
    facts: dict[str, Any] = {"under_way": [used]} if how == "under way" else {"history": (used,)}
    for rest in (BOTH, plan(SECOND)):
        assert admitted(gates(APPROVE, approvals=(word(),), **facts), *WORLD, of=SECOND, within=rest)
    again = closed(gates(APPROVE, approvals=(word(),), **facts), *WORLD, of=FIRST, within=BOTH)
    assert again[0] == "approval"


def test_what_was_done_before_the_approval_uses_nothing_up() -> None:
    earlier = intent(IntentState.DONE, 200)
    assert admitted(gates(APPROVE, approvals=(word(),), history=(earlier,)), *WORLD, of=FIRST, within=BOTH)


@pytest.mark.parametrize(
    "other",
    [
        plan(FIRST),
        plan(FIRST, step("c", "h1", "h2", groups="k")),
        plan(FIRST, SECOND, step("b")),
        plan(FIRST, step("c", "h2", "h3", groups="k")),
    ],
    ids=["fewer", "another target", "more", "another source"],
)
def test_a_plan_that_the_cluster_changed_beneath_is_another(other: Plan) -> None:
    reason = f"plan {BOTH.id} was approved of, and the cluster has changed since; {wants(other)}"
    assert closed(gates(APPROVE, approvals=(word(),)), *WORLD, of=FIRST, within=other) == ("approval", reason)


def test_an_approval_expires() -> None:
    old = word(age=24 * 3600.0)
    assert admitted(gates(APPROVE, approvals=(word(age=24 * 3600.0 - 1),)), *WORLD, of=FIRST, within=BOTH)
    reason = f"the approval of plan {BOTH.id} by eve has expired; {wants(BOTH)}"
    assert closed(gates(APPROVE, approvals=(old,)), *WORLD, of=FIRST, within=BOTH) == ("approval", reason)


def test_an_approval_is_of_one_cluster() -> None:
    elsewhere = word(cluster="other")
    assert closed(gates(APPROVE, approvals=(elsewhere,)), *WORLD, of=FIRST, within=BOTH)[1] == wants(BOTH)


def test_only_what_is_in_mode_approve_waits() -> None:
    settings = EnforcerSettings(mode=Mode.ENFORCE, groups={"k": Mode.APPROVE})
    assert admitted(gates(settings), *WORLD, of=FIRST, within=BOTH)
    assert closed(gates(settings), *WORLD, of=SECOND, within=BOTH)[0] == "approval"
    state = snapshot(*WORLD)
    assert gates(settings).waits_for_approval(state, BOTH)
    assert not gates(settings).waits_for_approval(state, plan(FIRST))
    assert not gates(settings, approvals=(word(),)).waits_for_approval(state, BOTH)
    assert not gates(settings).waits_for_approval(state, plan())


def test_nothing_waits_for_a_word_that_would_not_let_it_pass() -> None:
    assert not gates(EnforcerSettings(mode=Mode.OBSERVE)).waits_for_approval(snapshot(*WORLD), BOTH)
