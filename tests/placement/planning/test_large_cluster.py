"""A cluster of the size at which others give up: the plan is legal, near its bound, and takes seconds."""

import random
import time
from itertools import count

import pytest

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import legal
from ovirt_placement.planning.steps import apply
from ovirt_placement.planning.strategies import StrategyName, strategy
from ovirt_placement.rules.catalogue import find_violations
from tests.builders import APART, CLUSTER, TOGETHER, group, host, snapshot, vm
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
@pytest.mark.parametrize("name", [StrategyName.OPTIMAL, StrategyName.GREEDY])
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
