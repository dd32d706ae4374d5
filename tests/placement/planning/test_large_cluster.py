"""Clusters and groups at whose size others give up: plans are legal, near their bound, and take seconds."""

import random
import time
from itertools import count

import pytest

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Deadline, Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import legal
from ovirt_placement.planning.steps import apply
from ovirt_placement.planning.strategies import StrategyName, strategy
from ovirt_placement.rules.catalogue import find_violations
from tests.builders import APART, CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.placement.planning.plans import ALL, EACH
from tests.speed import of_processor, seconds_here

#: Far above what it takes (some seconds at worst), to fail only if the search runs wild.
PATIENCE_SECONDS = 30


def drawn(seed: int, most_free_mb: int, size: int = 40) -> Snapshot:
    """40 hosts, 750 VMs and 100 groups (or more), scattered without any regard to the rules."""
    chance = random.Random(seed)
    hosts = [f"h{number:03}" for number in range(size)]
    vms = [f"v{number:04}" for number in range(size * 75 // 4)]
    members = vms.copy()
    chance.shuffle(members)
    groups = []
    for number in range(size * 5 // 2):
        size = chance.randint(2, 5)
        rule = APART if number % 2 else TOGETHER
        groups.append(group(f"g{number}", rule, " ".join(members[:size])))
        del members[:size]
    return snapshot(
        *(host(name, free_mb=chance.randint(2000, most_free_mb)) for name in hosts),
        *(vm(name, chance.choice(hosts), needs_mb=chance.choice([1024, 2048, 4096, 8192])) for name in vms),
        *groups,
    )


#: What a plan of a large group may take; and where it has a thousand steps, each of which all rules judge.
PATIENCE_FOR_A_GROUP, MORE_PATIENCE = 5, 10


def quickly_planned(state: Snapshot, patience_seconds: float) -> Plan:
    began = time.process_time()
    plan = make_plan(state, CLUSTER, options=ALL, deadline=Deadline(lambda: 20.0))
    assert time.process_time() - began < seconds_here(patience_seconds)
    assert plan.remaining == ()
    return plan


@pytest.mark.system
def test_one_collision_in_a_negative_group_of_a_thousand_vms() -> None:
    names = [f"v{number:04}" for number in range(1000)]
    state = snapshot(
        *(host(f"h{number:04}") for number in range(1002)),
        *(vm(name, f"h{max(1, number):04}") for number, name in enumerate(names)),
        group("g", APART, " ".join(names)),
    )
    plan = quickly_planned(state, PATIENCE_FOR_A_GROUP)
    assert (plan.migrations, plan.proven) == (1, True)


@pytest.mark.parametrize(
    ("vms", "hosts", "memory_mb", "patience", "crowds"),
    [
        (60, 6, 131072, PATIENCE_FOR_A_GROUP, False),
        pytest.param(1000, 50, 2**22, MORE_PATIENCE, True, marks=pytest.mark.nightly),  # by their CPU
    ],
)
def test_a_large_positive_group_gathers(
    vms: int, hosts: int, memory_mb: int, patience: float, crowds: bool
) -> None:
    names = [f"v{number:04}" for number in range(vms)]
    state = snapshot(
        *(host(f"h{number:02}", memory_mb=memory_mb, free_mb=memory_mb // 2) for number in range(hosts)),
        *(vm(name, f"h{number % hosts:02}") for number, name in enumerate(names)),
        group("g", TOGETHER, " ".join(names)),
    )
    plan = quickly_planned(state, patience)
    assert plan.migrations == vms - vms // hosts
    assert plan.proven or crowds
    assert plan.crowded == ((plan.steps[0].target,) if crowds else ())


@pytest.mark.system
@pytest.mark.parametrize(("seed", "most_free_mb"), [(1, 64000), (3, 20000)])
def test_a_large_cluster_is_planned_step_by_step_within_seconds(seed: int, most_free_mb: int) -> None:
    state = drawn(seed, most_free_mb)
    began = time.process_time()
    plan = make_plan(state, CLUSTER, deadline=of_processor(PATIENCE_SECONDS))
    assert time.process_time() - began < seconds_here(2 * PATIENCE_SECONDS)

    violated = len(find_violations(state, CLUSTER))
    for step in plan.steps:
        assert legal(state, step)
        state = apply(state, step)
        before, violated = violated, len(find_violations(state, CLUSTER))
        assert violated <= before
    assert violated == len(plan.remaining) <= 2
    assert plan.migrations <= max(1, plan.at_least) * 1.5


@pytest.mark.system
@EACH
@pytest.mark.parametrize(("size", "seconds"), [(60, 1.0), (60, 4.0), (200, 0.5), (200, 1.0), (200, 4.0)])
def test_the_time_that_is_given_is_kept(size: int, seconds: float, name: StrategyName) -> None:
    """Counted in the processor's time, so that it is the same on a busy machine."""
    state, began = drawn(3, 8000, size), time.process_time()
    deadline = Deadline(lambda: began + seconds - time.process_time())
    make_plan(state, CLUSTER, strategy=strategy(name), deadline=deadline)
    assert time.process_time() - began <= 1.1 * seconds + seconds_here(0.3)


@pytest.mark.system
@pytest.mark.parametrize(
    ("size", "questions"), [(60, 2000), (60, 9000), (200, 700), (200, 1900), (200, 7000)]
)
def test_no_strategy_makes_worse_of_its_time_than_a_simpler_one(size: int, questions: int) -> None:
    """Time is counted in questions for it, a millisecond each: both get equally far on every machine."""
    state, patience = drawn(3, 8000, size), of_processor(PATIENCE_SECONDS)

    def reached(name: StrategyName) -> tuple[int, int]:
        asked = count(questions, -1)
        deadline = Deadline(lambda: 0.0 if patience.over else next(asked) / 1000)
        plan = make_plan(state, CLUSTER, strategy=strategy(name), deadline=deadline, explained=False)
        return len(plan.remaining), plan.migrations

    greedy = reached(StrategyName.GREEDY)
    assert reached(StrategyName.OPTIMAL) <= greedy
