"""The strategy `random`: one conflicting rule by lot, each of its VMs once, every move a legal migration."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.answers.plans import plan_record
from ovirt_placement.answers.plans.text import plan_of, text
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import NEVER
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import pose
from ovirt_placement.planning.problem.ends import StrategyChoice
from ovirt_placement.planning.steps import misfit
from ovirt_placement.planning.strategies import Random, StrategyName, strategy
from tests.builders import APART, CLUSTER, TOGETHER, Part, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.planning.brute_force import Ends
from tests.placement.planning.clusters import drawn
from tests.placement.planning.ordering.ordered import order
from tests.placement.planning.plans import ALL


def chosen(cluster: Snapshot, seed: int) -> StrategyChoice:
    return Random(seed).choose(pose(cluster, CLUSTER, options=ALL), NEVER)


def _three_rules() -> Snapshot:
    return snapshot(
        *(host(f"h{number}") for number in range(4)),
        *(vm(f"{twin}{number}", f"h{number}") for number in range(3) for twin in "ab"),
        *(group(f"g{number}", APART, f"a{number} b{number}") for number in range(3)),
    )


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
    found = [chosen(snapshot(*HOSTS, *parts), seed).where.items() for seed in range(10)]
    assert all(len(one) == 1 for one in found)
    assert {move for one in found for move in one} == expected


def test_the_lot_says_which_rule() -> None:
    found = [chosen(THREE_RULES, seed).where for seed in range(60)]
    assert {len(one) for one in found} == {1}
    assert {name for one in found for name in one} == {vm.id for vm in THREE_RULES.vms}


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 5))
def test_every_choice_is_an_improvement_that_can_be_carried_out(seed: int, lot: int) -> None:
    cluster = drawn(seed)
    problem, ends, choice = pose(cluster, CLUSTER, options=ALL), Ends(cluster), chosen(cluster, lot)
    assert choice == chosen(cluster, lot)
    end = ends.after(choice.where)
    assert ends.why_illegal(end) is None
    assert ends.value(end) <= ends.value(ends.start)
    assert not order(problem, choice.where, NEVER).stuck


def test_each_plan_draws_again_and_says_with_which_seed_it_is_repeated() -> None:
    cluster = THREE_RULES
    plans = [make_plan(cluster, CLUSTER, strategy=strategy(StrategyName.RANDOM)) for _ in range(36)]
    assert len({plan.seed for plan in plans}) > 30
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
