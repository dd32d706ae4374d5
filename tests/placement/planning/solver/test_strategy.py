"""The optimal strategy: models and neighbourhoods."""

from collections.abc import Mapping
from itertools import chain, repeat

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.maintenance.site import leaving
from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, pose
from ovirt_placement.planning.problem.ends import CandidateHosts, Strategy
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.solver import strategy as improvement
from ovirt_placement.planning.solver.construction import Construction
from ovirt_placement.planning.solver.greedy import Greedy
from ovirt_placement.planning.solver.model import Model, ModelScope
from ovirt_placement.planning.solver.stages import solve
from ovirt_placement.planning.solver.strategy import Improvement, Optimal
from tests.builders import CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.planning.brute_force import Ends
from tests.placement.planning.clusters import drawn
from tests.placement.planning.plans import ALL, moves


@pytest.fixture
def _never_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny clusters, too, are taken neighbourhood by neighbourhood."""
    monkeypatch.setattr(improvement, "_MOST_PLACES", 0)


def posed(state: Snapshot) -> Problem:
    return pose(state, CLUSTER, options=ALL)


def built(problem: Problem) -> Improvement:
    construction = Construction(problem, CandidateHosts(problem))
    construction.run(NEVER)
    return Improvement(construction)


def legal_end(state: Snapshot, where: Mapping[str, str]) -> bool:
    ends = Ends(state)
    return ends.why_illegal(ends.after(where)) is None


@pytest.mark.usefixtures("_never_as_one")
@example(543)  # a group that the engine lets gather nowhere
@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 10_000))
def test_ends_are_legal_and_never_worse(seed: int) -> None:
    state = drawn(seed, hosts=5, vms=9, groups=6)
    improving = built(posed(state))
    before = improving.value
    improving.run(NEVER)
    assert improving.bound <= improving.value <= before
    assert legal_end(state, improving.where)


#: Each of a and b must go to h0 or h1, which are full of VMs of all sizes; there is room on the others.
FULL = snapshot(
    *(host(f"h{number}", free_mb=1024) for number in range(2)),
    *(host(f"h{number}", free_mb=64 * 1024) for number in range(2, 9)),
    vm("a", "h8", needs_mb=8192), vm("b", "h8", needs_mb=8192),
    *(vm(f"v{number:02}", f"h{number % 2}", needs_mb=1024 * (1 + number // 2)) for number in range(18)),
    group("a", vms="a", hosts_rule=TOGETHER, hosts="h0 h1"),
    group("b", vms="b", hosts_rule=TOGETHER, hosts="h0 h1"),
)  # fmt: skip


@pytest.mark.usefixtures("_never_as_one")
def test_a_full_host_is_cleared_by_as_few_as_will_do() -> None:
    improving = built(posed(FULL))
    assert improving.value == (2, 0, 0, 0)
    improving.run(NEVER)
    assert improving.value == (0, 0, 0, 4)
    assert legal_end(FULL, improving.where)


def test_who_made_way_does_not_come_back_where_another_has_come() -> None:
    state = snapshot(
        host("h0", free_mb=0), host("h1"), host("h2"),
        vm("a", "h1", needs_mb=2048), vm("b", "h0", needs_mb=2048),
        group("a", vms="a", hosts_rule=TOGETHER, hosts="h0"),
    )  # fmt: skip
    problem = pose(state, CLUSTER)
    placement = ProblemPlacement(problem, {"a": "h0", "b": "h2"})
    solved = solve(placement, CandidateHosts(problem), {"b": ("h0", "h2")}, NEVER)
    assert solved is not None
    assert solved.where == {"b": "h2"}


def test_a_large_model_is_left_as_soon_as_the_time_is_over() -> None:
    hosts = [f"h{number}" for number in range(20)]
    vms = [f"v{number}" for number in range(100)]
    problem = pose(snapshot(*map(host, hosts), *(vm(name, "h0") for name in vms)), CLUSTER)
    scope = ModelScope(ProblemPlacement(problem), CandidateHosts(problem), dict.fromkeys(vms, tuple(hosts)))
    seconds = chain(repeat(1.0, 9), repeat(0.0))
    model = Model(scope, Deadline(lambda: next(seconds)))
    assert not model.whole
    assert len(model.at) == 9 * len(hosts)
    assert Model(scope).whole


def test_no_end_is_chosen_once_the_time_is_over() -> None:
    state = snapshot(
        host("h0"), host("h1"), vm("a", "h0"), group("a", vms="a", hosts_rule=TOGETHER, hosts="h1")
    )
    problem = pose(state, CLUSTER)
    placement, candidates = ProblemPlacement(problem), CandidateHosts(problem)
    assert solve(placement, candidates, {"a": ("h0", "h1")}, Deadline(lambda: 0.0)) is None


@pytest.mark.parametrize("strategy", [Greedy(), Optimal()], ids=lambda strategy: strategy.name)
def test_members_of_a_split_group_come_only_to_where_one_of_them_is(strategy: Strategy) -> None:
    """The host with much room has none of them: another VM makes way on the one that has."""
    state = snapshot(
        host("h1", free_mb=0), vm("a", "h1", needs_mb=2048), vm("b", "h1", needs_mb=2048),
        host("h2", free_mb=2048), vm("c", "h2", needs_mb=1024), vm("x", "h2", needs_mb=2048),
        host("h3", free_mb=3072), vm("y", "h3", needs_mb=1024),
        group("g", TOGETHER, vms="a b c"),
    )  # fmt: skip
    options = PlanOptions(
        closed=frozenset({"h1"}), constraints=tuple(leaving(state, ("h1",))), spared=frozenset({"g"})
    )
    choice = strategy.choose(pose(state, CLUSTER, options=options), NEVER)
    assert choice.where == {"a": "h2", "b": "h2", "x": "h3"}


@pytest.mark.usefixtures("_never_as_one")
def test_a_split_group_that_is_not_to_be_repaired_may_come_along_for_one_of_it() -> None:
    """No VM of it gets to the third host alone: all meet, and go there together."""
    state = snapshot(
        host("h1"), vm("a", "h1"), vm("b", "h1"), host("h2"), vm("c", "h2"), host("h3"),
        group("g", TOGETHER, vms="a b c"), group("home", vms="a", hosts_rule=TOGETHER, hosts="h3"),
    )  # fmt: skip
    options = PlanOptions(repair=ALL.repair, spared=frozenset({"g"}))
    plan = make_plan(state, CLUSTER, options=options)
    assert moves(plan) == ["c to h1", "a b c to h3"]
    assert not plan.remaining
    assert plan.at_least <= plan.migrations
