"""The optimal strategy: models, neighbourhoods, and ends to which VMs go straight."""

from collections.abc import Mapping
from itertools import chain, repeat

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.detours import direct_moves
from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, pose
from ovirt_placement.planning.problem.ends import CandidateHosts
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.solver import strategy as improvement
from ovirt_placement.planning.solver.construction import Construction
from ovirt_placement.planning.solver.model import Model, ModelScope
from ovirt_placement.planning.solver.stages import solve
from ovirt_placement.planning.solver.strategy import Improvement, straight_end
from tests.builders import APART, CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.planning.brute_force import Ends
from tests.placement.planning.clusters import drawn
from tests.placement.planning.solver.test_local_search import scrambled

ALL = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}))


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


@pytest.mark.usefixtures("_never_as_one")
def test_what_one_deadline_ends_is_gone_on_with_after_it() -> None:
    improving = built(posed(FULL))
    improving.run(Deadline(lambda: 0.0))
    end = improving.run_from(improving.where, NEVER)
    assert len(end) == 4


@pytest.mark.usefixtures("_never_as_one")
def test_another_end_is_made_better() -> None:
    """That of a walk in which two more than needed made way."""
    improving = built(posed(FULL))
    walked = {"a": "h0", "b": "h1", **dict.fromkeys(("v06", "v08", "v05", "v07", "v04", "v09"), "h5")}
    end = improving.run_from(walked, NEVER)
    assert len(end) == 4
    assert legal_end(FULL, end)


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


#: Of each pair one must leave a full host; only the third host has room, for one VM.
BLOCKED = snapshot(
    host("h1", free_mb=0), host("h2", free_mb=0), host("h3", free_mb=2048),
    *(vm(name, "h1", needs_mb=2048) for name in "ab"), *(vm(name, "h2", needs_mb=2048) for name in "cd"),
    group("ab", APART, "a b"), group("cd", APART, "c d"),
)  # fmt: skip
#: Each of the first pair may be with neither of the other one: these wait for no room.
RIVALS = snapshot(
    *(host(f"h{number}") for number in (1, 2, 3)),
    vm("a", "h1"), vm("b", "h1"), vm("c", "h2"), vm("d", "h2"),
    group("ab", APART, "a b"), group("cd", APART, "c d"), group("ac", APART, "a c"),
)  # fmt: skip


def found(state: Snapshot, where: Mapping[str, str]) -> Mapping[str, str] | None:
    problem = pose(state, CLUSTER)
    return straight_end(ProblemPlacement(problem, where), CandidateHosts(problem), NEVER)


@pytest.mark.parametrize("state", [BLOCKED, RIVALS])
def test_vms_that_would_change_places_go_one_after_the_other(state: Snapshot) -> None:
    other = found(state, {"a": "h2", "c": "h1"})
    assert other is not None
    assert len(direct_moves(ProblemPlacement(pose(state, CLUSTER)), other)) == len(other) == 2


def test_an_end_to_which_all_go_straight_is_kept() -> None:
    assert found(BLOCKED, {"a": "h3", "c": "h1"}) is None


@pytest.mark.system
@pytest.mark.parametrize(("seed", "migrations"), [(0, 5), (13, 9)])
def test_where_some_order_needs_no_detour_a_plan_is_proven(seed: int, migrations: int) -> None:
    plan = make_plan(scrambled(seed), CLUSTER, explained=False)
    assert (plan.proven, plan.migrations, plan.remaining) == (True, migrations, ())
