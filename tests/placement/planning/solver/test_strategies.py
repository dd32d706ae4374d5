"""The optimal strategy, its models and neighbourhoods; from ends to moves, and what time each stage has."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, repeat

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.maintenance.site import leaving
from ovirt_placement.planning.plan import NEVER, NO_TIME, Deadline
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.bound import bound
from ovirt_placement.planning.problem.build_problem import PlanOptions, pose
from ovirt_placement.planning.problem.ends import CandidateHosts, Strategy, StrategyChoice, value
from ovirt_placement.planning.problem.placement import ProblemPlacement, are_legal
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.solver import strategy as improvement
from ovirt_placement.planning.solver.construction import Construction
from ovirt_placement.planning.solver.forms import cp_model
from ovirt_placement.planning.solver.greedy import Greedy
from ovirt_placement.planning.solver.model import Model, ModelScope
from ovirt_placement.planning.solver.stages import solve as solve_model
from ovirt_placement.planning.solver.strategy import Improvement, Optimal
from ovirt_placement.planning.strategies import solve
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


@example(543, False)  # a group that the engine lets gather nowhere
@example(138, True)  # what no end repairs, of VMs that may move
@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_ends_are_legal_and_never_worse_and_no_end_is_better_than_the_bound(seed: int, as_one: bool) -> None:
    state = drawn(seed, hosts=5, vms=9, groups=6)
    improving = built(posed(state))
    before = improving.value
    with pytest.MonkeyPatch.context() as patch:
        if not as_one:  # tiny clusters, too, are taken neighbourhood by neighbourhood
            patch.setattr(improvement, "_MOST_PLACES", 0)
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
    solved = solve_model(placement, CandidateHosts(problem), {"b": ("h0", "h2")}, NEVER)
    assert solved is not None
    assert solved.where == {"b": "h2"}


def test_a_solver_that_was_stopped_before_it_knew_a_bound_proves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cp_model.CpSolver, "best_objective_bound", -5.0)
    problem = posed(FULL)
    candidates = CandidateHosts(problem)
    places = {vm: candidates.hosts_of(vm) for vm in problem.memory_mb}
    solved = solve_model(ProblemPlacement(problem), candidates, places, NEVER, evenly=False)
    assert solved is not None
    assert solved.bound == (0, 0, 0, 0)


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
    assert solve_model(placement, candidates, {"a": ("h0", "h1")}, Deadline(lambda: 0.0)) is None


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


@dataclass
class Clock:
    """A clock, and the time in which a process has a CPU.

    `busy` is the share of the time that the process gets; above 1 where its threads work side by side.
    """

    busy: float = 1.0
    now: float = 1000.0
    worked: float = 7.0

    def run(self, seconds: float) -> None:
        self.now += seconds
        self.worked += seconds * self.busy


class Found(Strategy):
    """A strategy that has come to this end."""

    name = "found"
    goes_on = False

    def __init__(self, end: Mapping[str, str]) -> None:
        self._end = end

    def choose(
        self, problem: Problem, deadline: Deadline, known: StrategyChoice | None = None
    ) -> StrategyChoice:
        return StrategyChoice(self._end, bound(problem))


def test_a_part_of_the_way_that_repairs_nothing_is_not_taken() -> None:
    """There is no time to find out that no detour brings a VM to a full host, nor who moves for nothing."""
    state = snapshot(
        host("h1", free_mb=0), host("h2", free_mb=0), host("h3"), vm("a", "h1", needs_mb=2048), vm("b", "h1"),
        vm("c", "h2"), group("a", vms="a", hosts_rule=TOGETHER, hosts="h2"),
    )  # fmt: skip
    *_, found = solve(pose(state, CLUSTER), Found({"a": "h2", "b": "h3"}), NO_TIME)
    assert (found.moves, found.proven) == ((), False)


@dataclass
class Patient(Found):
    """One that takes all its time; `given` is how much it was offered, and `simple` plans first."""

    clock: Clock
    simple: Strategy | None = None
    given: float = 0.0

    def choose(
        self, problem: Problem, deadline: Deadline, known: StrategyChoice | None = None
    ) -> StrategyChoice:
        self.given = worked_in(self.clock, deadline)
        return StrategyChoice({}, bound(problem))


@pytest.mark.parametrize(
    ("seconds", "shares"),
    [pytest.param(4.0, (2.5, 0.0), id="all of it"), pytest.param(40.0, (7.25, 19.75), id="its share")],
)
def test_what_another_would_begin_too_late_with_has_the_time_for_itself(
    seconds: float, shares: tuple[float, float]
) -> None:
    """With 2,000 VMs and hosts the other one would begin after four seconds."""
    vms = (vm(f"v{at}", f"h{at}") for at in range(2000))
    problem = pose(snapshot(*(host(f"h{at}") for at in range(2000)), *vms), CLUSTER)
    clock = Clock()
    simple = Patient(clock)
    better = Patient(clock, simple)
    list(solve(problem, better, ending(clock, seconds)))
    assert (simple.given, better.given) == shares


@pytest.mark.parametrize("seconds", [3.5, 4.0, 10.0, 40.0])
def test_in_a_small_problem_another_leaves_a_simple_strategy_the_time_that_it_gets_alone(
    seconds: float,
) -> None:
    """What that one repairs by detours in a few seconds was lost where there were no more than these."""
    problem = pose(snapshot(host("h1"), host("h2"), vm("a", "h1")), CLUSTER)
    clock = Clock()
    better = Patient(clock, Found({}))
    list(solve(problem, better, ending(clock, seconds)))
    assert 0.0 < better.given <= seconds - 3.0


TANGLED = {"hosts": 40, "vms": 200, "groups": 120}


@pytest.mark.system
@pytest.mark.parametrize(
    ("seed", "size"),
    [
        *((seed, {"hosts": 8, "vms": 40, "groups": 22}) for seed in (6, 24)),
        *((seed, TANGLED) for seed in (6, 14, 16, 19, 37)),
    ],
)
def test_more_time_makes_no_plan_of_the_greedy_strategy_worse(seed: int, size: dict[str, int]) -> None:
    """Time is counted in questions for it, so that it is the same on every machine."""
    problem = pose(drawn(seed, **size), CLUSTER, options=ALL)
    values = []
    for questions in (50, 150, 500, 1500, 5000):
        left = count(questions, -1)
        *_, solution = solve(problem, Greedy(), Deadline(partial(next, left)))
        values.append(value(problem, solution.moves))
    assert values == sorted(values, reverse=True)


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 200), min_size=2, max_size=2).map(sorted))
def test_direct_repairs_are_legal_and_only_added_to_in_more_time(seed: int, questions: list[int]) -> None:
    problem = pose(drawn(seed, hosts=8, vms=20, groups=12), CLUSTER, options=ALL)
    short, long = (
        Greedy().repair_directly(problem, Deadline(partial(next, count(most, -1)))) for most in questions
    )
    assert are_legal(problem, long)
    assert value(problem, long) <= value(problem, short) <= value(problem, ())


@pytest.mark.parametrize(("seed", "least"), [(27, 1), (257, 0)])
def test_where_no_order_leads_to_an_end_what_can_be_repaired_directly_is(seed: int, least: int) -> None:
    """Three hard rules were left violated in both."""
    problem = pose(drawn(seed, hosts=8, vms=30, groups=16), CLUSTER, options=ALL)
    *_, solution = solve(problem, Greedy(), Deadline(partial(next, count(400, -1))))
    assert value(problem, solution.moves)[0] == least


def ending(clock: Clock, seconds: float) -> Deadline:
    return Deadline.after(seconds, lambda: clock.now, lambda: clock.worked)


def worked_in(clock: Clock, deadline: Deadline) -> float:
    began = clock.worked
    while not deadline.over:
        clock.run(0.125)
    return clock.worked - began


@pytest.mark.parametrize("busy", [1.0, 0.5, 0.25, 2.0])
def test_the_clock_is_the_limit_on_every_machine(busy: float) -> None:
    clock = Clock(busy)
    deadline = ending(clock, 30.0)
    clock.run(29.5)
    assert not deadline.over
    clock.run(0.5)
    assert deadline.over


@pytest.mark.parametrize(
    ("busy", "seconds", "share", "left"),
    [
        pytest.param(1.0, 30.0, {"share": 0.3}, 21.0, id="a share of the work"),
        pytest.param(0.5, 30.0, {"share": 0.3}, 12.0, id="as much work on a busy machine"),
        pytest.param(0.1, 30.0, {"share": 0.6}, 6.0, id="half of the rest is left to later stages"),
        pytest.param(0.1, 32.0, {"share": 0.75, "lent": 0.0}, 8.0, id="nothing is lent before more work"),
        pytest.param(2.0, 30.0, {"share": 0.5}, 15.0, id="threads side by side do not shorten a stage"),
    ],
)
def test_a_stage_leaves_time_to_those_after_it(
    busy: float, seconds: float, share: dict[str, float], left: float
) -> None:
    clock = Clock(busy)
    deadline = ending(clock, seconds)
    worked_in(clock, deadline.within(**share))
    assert deadline.seconds_left() == left


def test_a_share_of_a_share_ends_within_it() -> None:
    clock = Clock(busy=0.5)
    outer = ending(clock, 32.0).within(0.5)
    assert worked_in(clock, outer.within(0.25)) == 4.0
    assert not outer.over
    assert worked_in(clock, outer) <= 12.0


def test_without_a_limit_a_share_has_none() -> None:
    share = NEVER.within(0.1)
    assert (share.over, share.seconds_left()) == (False, math.inf)
