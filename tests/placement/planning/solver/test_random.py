"""The strategy `random`: one conflicting rule by lot, each of its VMs once, every move a legal migration."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.answers.plans import plan_record
from ovirt_placement.answers.plans.text import plan_of, text
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, pose
from ovirt_placement.planning.problem.ends import StrategyChoice
from ovirt_placement.planning.steps import misfit
from ovirt_placement.planning.strategies import Random, StrategyName, strategy
from tests.builders import APART, CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.planning.brute_force import Ends
from tests.placement.planning.clusters import drawn
from tests.placement.planning.ordering.ordered import order

OPTIONS = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}))


def chosen(cluster: Snapshot, seed: int) -> StrategyChoice:
    return Random(seed).choose(pose(cluster, CLUSTER, options=OPTIONS), NEVER)


def _three_rules() -> Snapshot:
    return snapshot(
        *(host(f"h{number}") for number in range(4)),
        *(vm(f"{twin}{number}", f"h{number}") for number in range(3) for twin in "ab"),
        *(group(f"g{number}", APART, f"a{number} b{number}") for number in range(3)),
    )


def test_one_of_two_that_share_a_host_moves() -> None:
    """The document's sanity test."""
    cluster = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", APART, "a b"))
    for seed in range(10):
        (move,) = chosen(cluster, seed).where.items()
        assert move in {("a", "h2"), ("b", "h2")}


def test_the_lot_says_which_rule() -> None:
    cluster = _three_rules()
    moved = {next(iter(chosen(cluster, seed).where)) for seed in range(60)}
    assert moved == {vm.id for vm in cluster.vms}
    assert all(len(chosen(cluster, seed).where) == 1 for seed in range(60))


def test_a_minority_joins_the_majority() -> None:
    cluster = snapshot(
        host("h1"),
        host("h2"),
        *(vm(name, "h1") for name in "abc"),
        vm("d", "h2"),
        group("g", TOGETHER, "a b c d"),
    )
    assert all(chosen(cluster, seed).where == {"d": "h1"} for seed in range(10))


def test_a_rule_that_no_migration_repairs_leaves_the_turn_to_another() -> None:
    cluster = snapshot(
        host("h1"),
        host("h2"),
        vm("a", "h1", migratable=False),
        vm("b", "h1", migratable=False),
        vm("c", "h1"),
        group("stuck", APART, "a b"),
        group("wrong host", vms="c", hosts_rule=APART, hosts="h1"),
    )
    assert all(chosen(cluster, seed).where == {"c": "h2"} for seed in range(10))


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 5))
def test_every_choice_is_an_improvement_that_can_be_carried_out(seed: int, lot: int) -> None:
    cluster = drawn(seed)
    problem, ends, choice = pose(cluster, CLUSTER, options=OPTIONS), Ends(cluster), chosen(cluster, lot)
    assert choice == chosen(cluster, lot)
    end = ends.after(choice.where)
    assert ends.why_illegal(end) is None
    assert ends.value(end) <= ends.value(ends.start)
    assert not order(problem, choice.where, NEVER).stuck


def test_without_time_nothing_moves() -> None:
    cluster = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", APART, "a b"))
    assert not Random().choose(pose(cluster, CLUSTER), Deadline(lambda: 0.0)).where


def test_each_plan_draws_again_and_says_with_which_seed_it_is_repeated() -> None:
    cluster = _three_rules()
    plans = [make_plan(cluster, CLUSTER, strategy=strategy(StrategyName.RANDOM)) for _ in range(40)]
    assert len({plan.seed for plan in plans}) > 30
    assert len({plan.id for plan in plans}) > 3
    for plan in plans:
        assert misfit(cluster, plan) is None
        again = make_plan(cluster, CLUSTER, strategy=strategy(StrategyName.RANDOM, plan.seed))
        assert (again.id, again.seed) == (plan.id, plan.seed)
        record = plan_record(plan, cluster)
        assert f"(random, seed {plan.seed}: a shorter plan may exist" in text(record)
        assert plan_of(msgspec.to_builtins(record)).seed == record.seed == plan.seed


def test_other_strategies_draw_nothing() -> None:
    plan = make_plan(_three_rules(), CLUSTER, strategy=strategy(StrategyName.GREEDY))
    assert plan.seed is None
    assert "seed" not in text(plan_record(plan, _three_rules()))


def test_a_plan_repairs_the_one_rule_that_was_drawn() -> None:
    cluster = _three_rules()
    plan = make_plan(cluster, CLUSTER, strategy=Random())
    assert (plan.migrations, len(plan.remaining)) == (1, 2)
    assert not plan.proven
