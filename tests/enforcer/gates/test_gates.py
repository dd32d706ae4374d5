"""Nothing passes that should not: mode, busy clusters, cooldowns, limits, and the rules once more."""

from __future__ import annotations

import pytest

from ovirt_enforcer.gates.gates import HOUR_SECONDS, NEVER_ASKED, Closed, Gates
from ovirt_enforcer.planning.planner import make_plan
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.store.intents import Intent, IntentState
from tests.builders import APART, CLUSTER, Part, cluster, group, host, pending, snapshot, vm

ENFORCE = EnforcerSettings(mode=Mode.ENFORCE)
PARTS = (host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", APART, "a b"))


def intent(state: IntentState, age: float, vm_id: str = "a", error: str | None = "it broke") -> Intent:
    return Intent(
        id=1,
        vm=vm_id,
        cluster=CLUSTER,
        source="h1",
        target="h2",
        memory_mb=None,
        correlation_id="id",
        state=state,
        created=0.0,
        updated=0.0,
        age_seconds=age,
        error=error,
    )


def closed(gates: Gates, *more: Part) -> str:
    plan = make_plan(snapshot(*PARTS), CLUSTER)
    with pytest.raises(Closed) as reason:
        gates.admit(snapshot(*PARTS, *more), plan)
    return str(reason.value)


def test_a_step_passes_when_nothing_speaks_against_it() -> None:
    plan = make_plan(snapshot(*PARTS), CLUSTER)
    admitted = Gates(ENFORCE, (), ()).admit(snapshot(*PARTS), plan)
    assert (admitted.cluster, admitted.step) == (CLUSTER, plan.steps[0])


def test_nothing_passes_in_a_dry_run() -> None:
    assert "dry run" in closed(Gates(EnforcerSettings(), (), ()))


@pytest.mark.parametrize(
    "more",
    [
        (vm("other", "h2", status="migrating"),),
        (vm("other"), pending("other", "h2")),
        (vm("other", "h1", migrating_to="h2"),),
    ],
    ids=["migrating", "starting", "target known"],
)
def test_a_cluster_in_which_something_moves_is_left_alone(more: tuple[Part, ...]) -> None:
    assert "other is on its way already" in closed(Gates(ENFORCE, (), ()), *more)


def test_a_migration_of_ours_that_may_be_under_way_keeps_the_cluster_closed() -> None:
    assert "has not ended yet" in closed(Gates(ENFORCE, (), (intent(IntentState.UNKNOWN, 9999),)))


def test_a_cluster_that_is_upgraded_is_left_alone() -> None:
    assert "upgraded" in closed(Gates(ENFORCE, (), ()), cluster(upgrade_mode=True))


def test_what_moves_elsewhere_is_no_obstacle() -> None:
    parts = (*PARTS, cluster(), cluster("other"), host("far", cluster="other"))
    state = snapshot(*parts, vm("busy", "far", cluster="other", status="migrating"))
    assert Gates(ENFORCE, (), ()).admit(state, make_plan(state, CLUSTER))


@pytest.mark.parametrize(
    ("history", "held"),
    [
        ([intent(IntentState.FAILED, 599)], True),
        ([intent(IntentState.FAILED, 601)], False),
        ([intent(IntentState.FAILED, 700), intent(IntentState.FAILED, 601)], True),
        ([intent(IntentState.FAILED, 1300), intent(IntentState.FAILED, 1201)], False),
        ([intent(IntentState.FAILED, 700), intent(IntentState.DONE, 601)], False),
        ([intent(IntentState.FAILED, 10, error=NEVER_ASKED)], False),
        ([intent(IntentState.FAILED, age) for age in range(9790, 9580, -10)], True),
        ([intent(IntentState.FAILED, age) for age in range(9900, 9600, -10)], False),
        ([intent(IntentState.DONE, HOUR_SECONDS - 1)] * 6, True),
        ([intent(IntentState.DONE, HOUR_SECONDS - 1)] * 5, False),
        ([intent(IntentState.DONE, HOUR_SECONDS + 1)] * 6, False),
    ],
)
def test_a_vm_rests_after_failures_and_after_many_migrations(history: list[Intent], held: bool) -> None:
    gates = Gates(ENFORCE, history, ())
    assert ("a" in gates.held(snapshot(*PARTS))) is held
    if held:
        assert closed(gates) == gates.held(snapshot(*PARTS))["a"]


def test_the_longest_cooldown_lasts_as_long_as_the_vm_keeps_failing() -> None:
    longest = 16 * ENFORCE.cooldown_seconds
    ages = [longest - 1 + number * (longest + ENFORCE.interval_seconds) for number in range(9)]
    remembered = [age for age in ages if age < Gates.reach_seconds(ENFORCE)]
    history = [intent(IntentState.FAILED, age) for age in reversed(remembered)]
    assert "the cooldown is 9600 s" in Gates(ENFORCE, history, ()).held(snapshot(*PARTS))["a"]


def test_a_cluster_has_a_limit_of_its_own() -> None:
    history = [intent(IntentState.DONE, 100, vm_id=f"vm{number}") for number in range(120)]
    assert "cluster_migrations_per_hour" in closed(Gates(ENFORCE, history, ()))
    assert Gates(ENFORCE, history[1:], ()).admit(snapshot(*PARTS), make_plan(snapshot(*PARTS), CLUSTER))


def test_the_rules_are_asked_again_of_the_newest_snapshot() -> None:
    plan = make_plan(snapshot(*PARTS), CLUSTER)
    full = (host("h1"), host("h2", free_mb=1), *PARTS[2:])
    with pytest.raises(Closed, match="no longer allow"):
        Gates(ENFORCE, (), ()).admit(snapshot(*full), plan)
