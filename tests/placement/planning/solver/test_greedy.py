"""Strategies without a solver: greedy, and by lot, where each VM of one conflicting rule moves once."""

import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.answers.plans import plan_record
from ovirt_placement.answers.plans.text import plan_of, text
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import pose
from ovirt_placement.planning.problem.ends import Score, Strategy, StrategyChoice, score
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.solver.assignment import Assignment
from ovirt_placement.planning.solver.greedy import Greedy, spread
from ovirt_placement.planning.steps import misfit
from ovirt_placement.planning.strategies import Random, StrategyName, strategy
from ovirt_simulator.generate import Sizes, generate
from tests.builders import APART, CLUSTER, TOGETHER, Part, group, host, needed_mb, snapshot, vm
from tests.examples import examples
from tests.placement.planning.brute_force import Ends
from tests.placement.planning.clusters import drawn
from tests.placement.planning.ordered import order
from tests.placement.planning.plans import ALL
from tests.speed import seconds_here

#: Far above what it takes, and far below what it took once.
PATIENCE_SECONDS = 5.0


def problem_of(cluster: Snapshot, **options: float) -> Problem:
    return pose(cluster, cluster.clusters[0].id, options=replace(ALL, **options))


def reached(problem: Problem, choice: StrategyChoice) -> Score:
    return score(ProblemPlacement(problem, choice.where))


def chosen(cluster: Snapshot) -> StrategyChoice:
    return Greedy().choose(problem_of(cluster), NEVER)


@pytest.mark.system
def test_tiny_clusters_need_at_most_half_as_many_migrations_again_on_average() -> None:
    needed = taken = repaired = 0
    clusters = 250
    for seed in range(clusters):
        cluster = drawn(seed)
        ends, choice = Ends(cluster), chosen(cluster)
        best, value = ends.best_end(), ends.value(ends.after(choice.where))
        assert best <= value <= ends.value(ends.start)
        if value[:2] == best[:2]:
            repaired += 1
            needed += best[2]
            taken += value[2]
    assert taken <= 1.5 * needed
    assert repaired >= 0.95 * clusters


@settings(max_examples=examples(250), deadline=None)
@given(st.integers(0, 10**9), st.none() | st.integers(0, 5))
def test_an_end_is_legal_as_good_as_it_says_and_chosen_again(seed: int, lot: int | None) -> None:
    """By lot each migration is legal as it is; what is repaired greedily may take detours."""
    cluster, strategy = drawn(seed, hosts=5, vms=9, groups=6), Greedy() if lot is None else Random(lot)
    problem, ends = problem_of(cluster), Ends(cluster)
    choice = strategy.choose(problem, NEVER)
    assert choice == strategy.choose(problem_of(cluster), NEVER)
    end = ends.after(choice.where)
    assert ends.why_illegal(end) is None
    hard, soft, migrations = ends.value(end)
    assert (hard, soft, migrations) <= ends.value(ends.start)
    found = reached(problem, choice)
    assert (found.hard, sum(found.soft), found.migrations) == (hard, sum(soft), migrations)
    assert choice.bound <= found.value
    assert choice.where.keys() <= {known.id for known in ends.vms if known.migratable}
    assert lot is None or not order(problem, choice.where, NEVER).stuck


@pytest.mark.parametrize("strategy", [Greedy(), Random()], ids=lambda strategy: strategy.name)
def test_without_time_all_stays_where_it_is(strategy: Strategy) -> None:
    cluster = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", APART, "a b"))
    assert not strategy.choose(problem_of(cluster), Deadline(lambda: 0.0)).where


def test_a_group_follows_the_one_that_must_be_on_a_host() -> None:
    cluster = snapshot(
        *map(host, ("h1", "h2", "h3")), vm("a", "h1"), vm("b", "h2"), group("together", TOGETHER, "a b"),
        group("on h3", vms="a", hosts_rule=TOGETHER, hosts="h3"),
    )  # fmt: skip
    plan = make_plan(cluster, CLUSTER, strategy=Greedy())
    assert (len(plan.steps), plan.remaining) == (2, ())


def test_a_full_host_is_emptied_a_little_for_a_hard_rule() -> None:
    cluster = snapshot(
        host("h1", free_mb=0), host("h2", free_mb=0), host("h3", free_mb=1024), vm("a", "h1", needs_mb=2048),
        vm("b", "h2", needs_mb=2048, migratable=False), vm("small", "h2", needs_mb=1024),
        vm("large", "h2", needs_mb=4096), vm("one", "h2", needs_mb=1024), host("h4", free_mb=1024),
        group("g", TOGETHER, "a b"),
    )  # fmt: skip
    found = chosen(cluster)
    assert reached(problem_of(cluster), found).hard == 0
    assert found.where["a"] == "h2"
    assert {"small", "one"} <= found.where.keys()


def timed(cluster: Snapshot) -> tuple[StrategyChoice, float]:
    began = time.process_time()
    problem = problem_of(cluster)
    choice = Greedy().choose(problem, NEVER)
    assert not order(problem, choice.where, NEVER).stuck
    return choice, time.process_time() - began


@pytest.mark.system
def test_a_large_group_that_fits_nowhere_is_given_up_soon() -> None:
    names = [f"v{number:04}" for number in range(1000)]
    cluster = snapshot(
        *(host(f"h{number:02}", memory_mb=2**19, free_mb=2**18) for number in range(50)),
        *(vm(name, f"h{number % 50:02}") for number, name in enumerate(names)),
        group("g", TOGETHER, " ".join(names)),
    )
    choice, seconds = timed(cluster)
    assert not choice.where
    assert seconds < seconds_here(PATIENCE_SECONDS)


def test_a_large_group_parts_altogether() -> None:
    names = [f"v{number:03}" for number in range(500)]
    cluster = snapshot(
        *(host(f"h{number:03}") for number in range(500)),
        *(vm(name, f"h{number // 2:03}") for number, name in enumerate(names)),
        group("g", APART, " ".join(names)),
    )
    choice, _ = timed(cluster)
    assert reached(problem_of(cluster), choice).hard == 0
    assert (len(choice.where), max(Counter(choice.where.values()).values())) == (250, 1)


def assert_even(problem: Problem, where: Mapping[str, str]) -> None:
    """No host gets more than twice what each possible target would, or than one VM, which is not divided."""
    targets = {target for name in where for target in problem.targets[name]}
    for size in (problem.memory_mb, problem.cpu):
        rises = dict.fromkeys(problem.hosts, 0.0)
        for name, target in where.items():
            rises[target] += size[name]
            rises[problem.where[name]] -= size[name]
        moved = [size[name] for name in where]
        assert max(rises.values()) <= 2 * max(sum(moved) / len(targets), *moved)


def pairs_that_must_part(seed: int) -> Snapshot:
    """15 hosts, 400 VMs, and 30 pairs that share a host; one host is far emptier than the others."""
    dice = random.Random(seed)
    names = [f"h{number:02}" for number in range(15)]
    homes = {f"{number:02}": dice.choice(names[1:]) for number in range(30)}
    fields = {"needs_mb": 4096, "vcpus": 2}
    vms = [vm(f"{twin}{at}", homes[at], usage_cpu_percent=40, **fields) for at in homes for twin in "ab"]
    vms += [vm(f"v{at:03}", names[1 + at % 14], usage_cpu_percent=20, **fields) for at in range(340)]
    on = {name: [one for one in vms if one.host == name] for name in names}
    hosts = [
        host(
            name, memory_mb=204800, free_mb=204800 - sum(map(needed_mb, there)), cores=24,
            cpu_percent=sum(one.vcpus * (one.usage_cpu_percent or 0) for one in there) / 24,
        )
        for name, there in on.items()
    ]  # fmt: skip
    return snapshot(*hosts, *vms, *(group(f"g{at}", APART, f"a{at} b{at}") for at in homes))


def test_pairs_that_must_part_do_not_pile_up_on_the_emptiest_host() -> None:
    problem = problem_of(pairs_that_must_part(1), memory_headroom=0.1, cpu_headroom=0.1)
    choice = Greedy().choose(problem, NEVER)
    found = reached(problem, choice)
    assert (found.hard, found.migrations) == (0, 30)
    assert found.headroom_deficit_mb == found.headroom_deficit_cpu == 0
    assert_even(problem, choice.where)


@pytest.mark.system
def test_a_large_cluster_rises_evenly() -> None:
    cluster = generate(Sizes(hosts=500, vms=10_000, groups=1_000, broken=0.2), seed=3)
    problem = problem_of(cluster, memory_headroom=0.1, cpu_headroom=0.1)
    choice = Greedy().choose(problem, NEVER)
    found = reached(problem, choice)
    assert (found.hard, sum(found.soft)) == (0, 0)
    assert found.migrations <= 1.1 * choice.bound[-1]
    assert_even(problem, choice.where)


def test_a_poor_end_is_spread_as_well() -> None:
    """Whichever strategy has put all VMs on one host that is as good as others."""
    cluster = snapshot(
        *(host(f"h{number}") for number in range(6)),
        *(vm(f"v{number}", "h0") for number in range(5)),
        *(group(f"g{number}", vms=f"v{number}", hosts_rule=APART, hosts="h0") for number in range(5)),
    )
    where = spread(problem_of(cluster), {f"v{number}": "h1" for number in range(5)})
    assert sorted(where.values()) == ["h1", "h2", "h3", "h4", "h5"]


def test_what_must_stay_together_is_spread_together() -> None:
    cluster = snapshot(
        *(host(f"h{number}") for number in range(3)),
        *(vm(name, "h0") for name in "abcd"),
        group("ab", TOGETHER, "a b", hosts_rule=APART, hosts="h0"),
        group("cd", TOGETHER, "c d", hosts_rule=APART, hosts="h0"),
    )
    where = spread(problem_of(cluster), dict.fromkeys("abcd", "h1"))
    assert where["a"] == where["b"] != where["c"] == where["d"]
    assert set(where.values()) == {"h1", "h2"}


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10**9))
def test_spreading_makes_nothing_worse_that_matters_more(seed: int) -> None:
    cluster = drawn(seed, hosts=6, vms=9, groups=5)
    problem, ends = problem_of(cluster), Ends(cluster)
    for where in (Greedy().choose(problem, NEVER).where, _legal_end(problem, ends, seed)):
        after = spread(problem, where)
        assert ends.value(ends.after(after)) <= ends.value(ends.after(where))
        assert ends.why_illegal(ends.after(after)) is None
        assert after.keys() == where.keys()
        assert _cost(problem, after) <= _cost(problem, where)


def _legal_end(problem: Problem, ends: Ends, seed: int) -> dict[str, str]:
    """Some VMs anywhere that they may go, as long as that is an end."""
    dice = random.Random(seed)
    where: dict[str, str] = {}
    for name in sorted(problem.where):
        others = sorted(problem.targets[name] - {problem.where[name]})
        if others and dice.random() < 0.5:
            further = {**where, name: dice.choice(others)}
            if ends.why_illegal(ends.after(further)) is None:
                where = further
    return where


def _cost(problem: Problem, where: Mapping[str, str]) -> tuple[int, ...]:
    assignment = Assignment(problem)
    for name, target in where.items():
        assignment.move((name,), target)
    return assignment.cost


def drawn_by_lot(cluster: Snapshot, seed: int) -> StrategyChoice:
    return Random(seed).choose(pose(cluster, CLUSTER, options=ALL), NEVER)


HOSTS = (host("h1"), host("h2"))
PAIR = (vm("a", "h1"), vm("b", "h1"), group("g", APART, "a b"))
THREE_RULES = snapshot(
    *(host(f"h{number}") for number in range(4)),
    *(vm(f"{twin}{number}", f"h{number}") for number in range(3) for twin in "ab"),
    *(group(f"g{number}", APART, f"a{number} b{number}") for number in range(3)),
)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param(PAIR, {("a", "h2"), ("b", "h2")}, id="the sanity test of the document"),
        pytest.param(
            (*(vm(name, "h1") for name in "abc"), vm("d", "h2"), group("g", TOGETHER, "a b c d")),
            {("d", "h1")},
            id="a minority joins the majority",
        ),
        pytest.param(
            (
                *(vm(name, "h1", migratable=False) for name in "ab"), vm("c", "h1"),
                group("stuck", APART, "a b"), group("wrong host", vms="c", hosts_rule=APART, hosts="h1"),
            ),
            {("c", "h2")},
            id="what no migration repairs leaves its turn to another",
        ),
    ],
)  # fmt: skip
def test_one_vm_moves(parts: tuple[Part, ...], expected: set[tuple[str, str]]) -> None:
    found = [drawn_by_lot(snapshot(*HOSTS, *parts), seed).where.items() for seed in range(10)]
    assert all(len(one) == 1 for one in found)
    assert {move for one in found for move in one} == expected


def test_the_lot_says_which_rule() -> None:
    found = [drawn_by_lot(THREE_RULES, seed).where for seed in range(60)]
    assert {len(one) for one in found} == {1}
    assert {name for one in found for name in one} == {vm.id for vm in THREE_RULES.vms}


def test_each_plan_draws_again_and_says_with_which_seed_it_is_repeated() -> None:
    cluster = THREE_RULES
    plans = [make_plan(cluster, CLUSTER, strategy=strategy(StrategyName.RANDOM)) for _ in range(24)]
    assert len({plan.seed for plan in plans}) > 20
    assert len({plan.id for plan in plans}) > 3
    for plan in plans:
        assert (plan.migrations, len(plan.remaining), plan.proven) == (1, 2, False)
        assert misfit(cluster, plan) is None
        again = make_plan(cluster, CLUSTER, strategy=strategy(StrategyName.RANDOM, plan.seed))
        assert (again.id, again.seed) == (plan.id, plan.seed)
        record = plan_record(plan, cluster)
        assert f"(random, seed {plan.seed}: a shorter plan may exist" in text(record)
        assert plan_of(msgspec.to_builtins(record)).seed == record.seed == plan.seed


def test_other_strategies_draw_nothing() -> None:
    plan = make_plan(THREE_RULES, CLUSTER, strategy=strategy(StrategyName.GREEDY))
    assert plan.seed is None
    assert "seed" not in text(plan_record(plan, THREE_RULES))
