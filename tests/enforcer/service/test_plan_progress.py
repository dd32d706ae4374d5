"""How far a plan has come, and what of it still fits."""

from itertools import combinations, count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_enforcer.service.plan_progress import PlanProgress, fitting_steps
from ovirt_placement.model import Snapshot
from ovirt_placement.planning import strategies
from ovirt_placement.planning.plan import Plan, Step
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from ovirt_placement.planning.strategies import StrategyName
from ovirt_placement.rules.catalogue import violated_groups
from ovirt_placement.store.enforcer.intents import IntentState
from ovirt_simulator.core.backend import PROMPT
from tests.builders import APART, CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.enforcer.actions.bench import ENFORCE, Bench, Settings, bench
from tests.enforcer.gates.judging import intent
from tests.examples import examples
from tests.placement.planning.clusters import drawn

SEEDS = st.integers(0, 100_000)
ALL = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}))


def plan_for(state: Snapshot) -> Plan:
    return make_plan(state, CLUSTER, options=ALL, strategy=strategies.strategy(StrategyName.GREEDY))


def planned(seed: int, vms: int, groups: int) -> tuple[Snapshot, Plan]:
    """The first cluster from this seed on for which there is anything to do."""
    drafts = (drawn(one, hosts=4, vms=vms, groups=groups) for one in count(seed))
    return next((state, plan) for state in drafts if (plan := plan_for(state)).steps)


def moved(state: Snapshot, vm: str, place: str) -> Snapshot:
    return replace(state, vms=tuple(replace(one, host=place) if one.id == vm else one for one in state.vms))


def holds(state: Snapshot, group_id: str) -> bool:
    """By the group's definition; groups here share VMs, but each must hold by itself."""
    (group,) = (one for one in state.affinity_groups if one.id == group_id)
    hosts = [state.vm_by_id[vm].host for vm in group.vms]
    if group.vms_rule.enabled:
        pairs = [one == other for one, other in combinations(hosts, 2)]
        return all(pairs) if group.vms_rule.positive else not any(pairs)
    return all((one in group.hosts) is group.hosts_rule.positive for one in hosts)


@pytest.mark.system
@given(SEEDS, st.data())
def test_what_is_left_starts_where_vms_are_waits_for_nothing_lost_and_repairs_what_it_said(
    seed: int, data: st.DataObject
) -> None:
    state, plan = planned(seed, vms=8, groups=5)
    changed = moved(
        state,
        data.draw(st.sampled_from([vm.id for vm in state.vms])),
        data.draw(st.sampled_from([host.id for host in state.hosts])),
    )
    held = data.draw(st.frozensets(st.sampled_from([vm.id for vm in state.vms]), max_size=1))
    kept = fitting_steps(plan, frozenset(range(len(plan.steps))), (), changed, held)
    at = changed
    for place in sorted(kept):
        step = plan.steps[place]
        assert held.isdisjoint(step.vms)
        assert kept.issuperset(step.after)
        for moving, source in zip(step.vms, step.sources, strict=True):
            assert at.vm_by_id[moving].host == source
            at = moved(at, moving, step.target)
    # A later step may break it again for a rule that counts more; then the plan itself says that it remains.
    remaining = {group for rule in plan.remaining for group in rule.groups}
    for place in kept:
        assert all(holds(at, group) for group in set(plan.steps[place].repairs) - remaining)


@settings(max_examples=examples(60), deadline=None)
@given(SEEDS)
def test_all_that_is_ahead_of_a_plan_fits_the_cluster_that_it_was_made_for(seed: int) -> None:
    state = drawn(seed, hosts=4, vms=8, groups=5)
    plan, violated = plan_for(state), violated_groups(state, CLUSTER)
    for number, step in enumerate(plan.steps):
        assert PlanProgress(plan, violated, done={*range(number)}).leave_out(state, set()) == frozenset()
        for name in step.vms:
            state = moved(state, name, step.target)


STATE = snapshot(
    *map(host, ("h1", "h2", "h3")),
    *(vm("a", "h1"), vm("b", "h2"), vm("c", "h3"), vm("d", "h1")),
    group("all", TOGETHER, "a b c"),
)


def step(name: str, source: str, target: str, *after: int, repairs: tuple[str, ...] = ()) -> Step:
    return Step(vms=(name,), sources=(source,), target=target, groups=("all",), repairs=repairs, after=after)


PLAN = Plan(
    cluster=CLUSTER,
    strategy="greedy",
    steps=(step("d", "h1", "h2"), step("b", "h2", "h1", 0), step("c", "h3", "h1", repairs=("all",))),
)


def end(progress: PlanProgress, place: int, state: IntentState = IntentState.DONE) -> None:
    ended, about = progress.plan.steps[place], {"plan": progress.plan.id, "step": place + 1}
    progress.end(intent(state, 0.0, ended.vms[0], None, target=ended.target, **about))


def carry_out(progress: PlanProgress, *places: int, state: IntentState = IntentState.DONE) -> None:
    """Let steps begin and end, one after the other."""
    for place in places:
        progress.begin(place)
        end(progress, place, state)


def at(**places: str) -> Snapshot:
    vms = tuple(replace(one, host=places.get(one.id, one.host)) for one in STATE.vms)
    return replace(STATE, vms=vms)


@pytest.fixture
def progress() -> PlanProgress:
    return PlanProgress(PLAN)


def test_what_waits_for_nothing_may_begin_and_the_rest_once_that_is_done(progress: PlanProgress) -> None:
    assert list(progress.ready()) == [0, 2]
    carry_out(progress, 2)
    assert list(progress.ready()) == [0]
    progress.begin(0)
    assert list(progress.ready()) == []
    end(progress, 0)
    assert list(progress.ready()) == [1]


def test_what_waits_for_a_failed_step_is_given_up_and_the_rest_goes_on(progress: PlanProgress) -> None:
    carry_out(progress, 0, state=IntentState.FAILED)
    assert list(progress.ready()) == [2]


def test_a_step_whose_migration_somebody_else_ended_is_given_up(progress: PlanProgress) -> None:
    progress.begin(0)
    assert progress.lose_all_but([])
    assert list(progress.ready()) == [2]


@pytest.mark.parametrize(("b", "unrepaired"), [("h2", ("all",)), ("h1", ())])
def test_a_rule_is_held_against_what_several_steps_repair_together_once_all_are_done(
    progress: PlanProgress, b: str, unrepaired: tuple[str, ...]
) -> None:
    carry_out(progress, 2)
    assert progress.prove(at(c="h1")) == ()
    carry_out(progress, 0, 1)
    assert not progress.over
    assert progress.prove(at(b=b, c="h1", d="h2")) == unrepaired
    assert progress.over


@pytest.mark.parametrize(("held", "place"), [({"c"}, {}), (set(), {"c": "h2"}), (set(), {"a": "h3"})])
def test_with_what_no_longer_fits_all_is_left_out_that_was_for_it(
    progress: PlanProgress, held: set[str], place: dict[str, str]
) -> None:
    assert progress.leave_out(at(**place), held) == {0, 1, 2}
    assert progress.over


def test_what_others_have_repaired_meanwhile_is_left_out_with_what_makes_room_for_it() -> None:
    by_others = replace(STATE, affinity_groups=(group("all", TOGETHER, "a"),))
    assert PlanProgress(PLAN, frozenset({"all"})).leave_out(by_others, set()) == {0, 1, 2}


def test_what_has_to_do_with_something_else_goes_on() -> None:
    other = Step(vms=("x",), sources=("h1",), target="h3", groups=("pair",), repairs=("pair",))
    vms = (*STATE.vms, vm("x", "h1"), vm("y", "h1"))
    state = snapshot(*STATE.hosts, *vms, *STATE.affinity_groups, group("pair", APART, "x y"))
    progress = PlanProgress(replace(PLAN, steps=(*PLAN.steps, other)))
    assert (progress.leave_out(state, {"c"}), list(progress.ready())) == ({0, 1, 2}, [3])


def test_a_step_waits_until_the_engine_counts_the_room_that_another_has_made(tmp_path: Path) -> None:
    """Its source is full for it until then: another plan would move more VMs, or find no way."""
    state = snapshot(
        host("h1", memory_mb=16384, free_mb=1000),
        *(host(name, memory_mb=16384, free_mb=8000) for name in ("h2", "h3")),
        vm("a", "h1", memory_mb=4096),
        vm("b", "h2", memory_mb=4096),
        *(vm(name, place, migratable=False) for name, place in (("c", "h1"), ("d", "h3"))),
        group("away", TOGETHER, "a d"),
        group("here", TOGETHER, "b c"),
    )
    with (
        bench(tmp_path, state, {**ENFORCE, "poll_seconds": 2.0}, LateCount) as late,
        late.enforcing() as daemon,
    ):
        late.run(daemon, until=60.0)
        assert late.begun() == ["a", "b"]
        assert not any(map(late.engine.queries.is_broken, late.engine.queries.state.groups.values()))


class LateCount(Bench):
    """Of an engine that counts the memory of VMs every 15 s."""

    def __init__(self, folder: Path, state: Snapshot, settings: Settings) -> None:
        super().__init__(folder, state, settings, replace(PROMPT, memory_count_seconds=15.0))
