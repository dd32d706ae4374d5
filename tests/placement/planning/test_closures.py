"""Groups that move at once: those that VMs that are down tie together, those of one failure domain."""

import random

import pytest

from ovirt_placement.model import RuleDomain, Snapshot
from ovirt_placement.planning.plan import NEVER
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, pose
from ovirt_placement.planning.strategies import StrategyName, strategy
from ovirt_placement.rules.elements.verdict import Request as Asked
from ovirt_placement.rules.placement_rules.units import filter_hosts
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    group,
    host,
    rule,
    snapshot,
    vm,
)
from tests.placement.planning.brute_force import BruteForce
from tests.placement.planning.ordering.oracle import Cluster, Request
from tests.placement.planning.ordering.ordered import order, reachable_end
from tests.placement.planning.test_planner_properties import end_of

ALL = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}))


def drawn(seed: int, *, soft: bool = True) -> Snapshot:
    """Two to four hosts, four to six VMs that run, and groups with VMs that are down."""
    dice = random.Random(seed)
    hosts = [f"h{number}" for number in range(dice.randint(2, 4))]
    running = [f"v{number}" for number in range(dice.randint(4, 6))]
    down = [f"d{number}" for number in range(dice.randint(1, 2))]
    members = [
        dice.sample(running, dice.randint(1, 3)) + dice.sample(down, dice.random() < 0.7)
        for _ in range(dice.randint(2, 4))
    ]
    others = [APART, SOFT_APART, SOFT_TOGETHER] if soft else [APART]
    return snapshot(
        *(host(name, free_mb=1024 * dice.choice([0, 1, 2, 4, 8])) for name in hosts),
        *(
            vm(
                name,
                dice.choice(hosts),
                needs_mb=1024 * dice.choice([1, 1, 2]),
                usage_cpu_percent=0,
                migratable=dice.random() < 0.93,
            )
            for name in running
        ),
        *(vm(name, None) for name in down),
        *(group(f"g{number}", TOGETHER, " ".join(vms)) for number, vms in enumerate(members)),
        *(
            group(f"other{number}", dice.choice(others), " ".join(dice.sample(running, 2)))
            for number in range(dice.randint(0, 2))
        ),
    )


def test_two_parts_that_each_stand_whole_become_one_by_one_request() -> None:
    state = snapshot(
        host("h1"), host("h2"),
        vm("a", "h1"), vm("b", "h1"), vm("c", "h2"), vm("d", "h2"), vm("e", "h2"), vm("link", None),
        group("two", TOGETHER, "a b link"), group("three", TOGETHER, "c d e link"),
    )  # fmt: skip
    for name in (StrategyName.OPTIMAL, StrategyName.GREEDY):
        plan = make_plan(state, CLUSTER, strategy=strategy(name))
        assert [(step.vms, step.target) for step in plan.steps] == [(("a", "b"), "h2")]
        assert plan.remaining == ()


@pytest.mark.parametrize("seed", range(0, 300, 20))
@pytest.mark.system
def test_no_plan_repairs_more_or_needs_fewer_migrations(seed: int) -> None:
    for one in range(seed, seed + 20):
        state = drawn(one)
        plan = make_plan(state, CLUSTER, options=ALL, explained=False)
        assert plan.proven
        assert end_of(state, plan) == BruteForce(state).best()


@pytest.mark.system
def test_greedy_plans_are_legal_and_claim_nothing_that_is_not_so() -> None:
    missed = 0
    for seed in range(100):
        state = drawn(seed)
        greedy = strategy(StrategyName.GREEDY)
        plan = make_plan(state, CLUSTER, options=ALL, explained=False, strategy=greedy)
        reached, best = end_of(state, plan), BruteForce(state).best()
        assert not plan.proven or reached == best
        missed += reached[0] != best[0]
    assert missed <= 2


@pytest.mark.parametrize("seed", range(10))
def test_no_member_comes_or_goes_while_others_go_at_once(seed: int) -> None:
    chance = random.Random(seed)
    for number in range(12):
        state = drawn(1000 * seed + number, soft=False)
        cluster = Cluster(state)
        ways = cluster.ways()
        end = reachable_end(cluster, ways, chance)
        found = order(pose(state, CLUSTER), end, NEVER)
        assert not found.stuck
        assert sum(len(one.move.vms) for one in found.moves) == cluster.fewest(ways, end)
        asked = [Request(one.move.vms, one.move.host, one.after) for one in found.moves]
        for _ in range(10):
            assert cluster.replay(asked, chance) is None


def test_a_group_that_ends_where_none_of_it_was_costs_the_detour() -> None:
    """By the end alone three migrations would do: to h3 no member comes alone, nor c to any other host."""
    state = snapshot(
        host("h1"), host("h2"), host("h3"), vm("a", "h1"), vm("b", "h1"), vm("c", "h2"),
        group("together", TOGETHER, "a b c"), group("on", vms="c", hosts_rule=TOGETHER, hosts="h3"),
    )  # fmt: skip
    plan = make_plan(state, CLUSTER, deadline=NEVER)
    assert BruteForce(state).best() == ((0, 0), plan.migrations)
    assert (plan.migrations, plan.proven, plan.at_least) == (5, True, 5)


HOSTS = (host("h0"), host("h1"), host("h2"))
RULE = rule(
    "one-rack",
    "same_domain",
    "a b",
    domains=(RuleDomain(name="r0", hosts=("h0",)), RuleDomain(name="r1", hosts=("h1", "h2"))),
)
OFF_H0 = group("off", TOGETHER, "a b", hosts_rule=APART, hosts="h0")
TIED = snapshot(*HOSTS, vm("a", "h0"), vm("b", "h0"), OFF_H0, RULE)
NOT_TIED = snapshot(*HOSTS, vm("a", "h0"), vm("b", "h0"), RULE)


@pytest.mark.parametrize("name", [StrategyName.OPTIMAL, StrategyName.GREEDY])
def test_a_plan_takes_it_to_the_other_domain(name: StrategyName) -> None:
    plan = make_plan(TIED, CLUSTER, strategy=strategy(name))
    (step,) = plan.steps
    assert step.vms == ("a", "b")
    assert step.target in ("h1", "h2")
    assert plan.proven
    assert plan.remaining == ()


def test_the_engine_is_let_pass_that_asks_for_one_vm_and_moves_the_group() -> None:
    found = filter_hosts(TIED, Asked(("a",), ("h1", "h2"), as_engine=True))
    assert [one.accepted for one in found] == [True, True]


def test_a_vm_that_no_group_ties_to_its_peers_stays_in_the_domain() -> None:
    found = filter_hosts(NOT_TIED, Asked(("a",), ("h1", "h2"), as_engine=True))
    assert [one.accepted for one in found] == [False, False]


def test_a_request_for_all_is_let_pass_only_where_no_other_member_stays() -> None:
    stays = snapshot(
        *HOSTS, *(vm(name, "h0") for name in "abc"), rule("r", "same_domain", "a b c", domains=RULE.domains)
    )
    found = filter_hosts(stays, Asked(("a", "b"), ("h1",)))
    assert [one.accepted for one in found] == [False]
    found = filter_hosts(NOT_TIED, Asked(("a", "b"), ("h1",)))
    assert [one.accepted for one in found] == [True]
