"""Orders of random plans: every interleaving is legal, the migrations are the fewest, no wait is needless."""

import random
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ovirt_placement.planning.plan import NEVER
from ovirt_placement.planning.problem.build_problem import pose
from tests.builders import CLUSTER
from tests.placement.planning.ordering.oracle import Cluster, Request
from tests.placement.planning.ordering.ordered import (
    MOVES,
    Order,
    drawn,
    of_size,
    order,
    reachable_end,
    repair,
    walked_end,
)
from tests.speed import seconds_here

SEEDS = range(20)
PER_SEED = 25
#: Twenty times what it takes.
PATIENCE_SECONDS = 2.0
HOSTS = ("h1", "h2", "h3")
GIB = 1024


def requests(found: Order) -> list[Request]:
    return [Request(one.move.vms, one.move.host, one.after) for one in found.moves]


def migrations(found: Order) -> int:
    return sum(len(one.move.vms) for one in found.moves)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_interleaving_is_legal_and_leads_there_with_the_fewest_migrations(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(PER_SEED):
        state = drawn(chance)
        cluster = Cluster(state)
        ways = cluster.ways()
        end = reachable_end(cluster, ways, chance)
        found = order(pose(state, CLUSTER), end, NEVER)

        assert not found.stuck
        assert migrations(found) == cluster.fewest(ways, end)
        asked = requests(found)
        for _ in range(10):
            assert cluster.replay(asked, chance) is None
        if len(asked) <= 5:
            assert cluster.every_interleaving_is_legal(asked)
            assert not any(map(cluster.every_interleaving_is_legal, with_one_wait_less(asked)))


def with_one_wait_less(asked: list[Request]) -> Iterator[list[Request]]:
    """Each wait left out in turn, but not those that it implies."""
    for at, one in enumerate(asked):
        for wait in one.after:
            after = {*one.after, *asked[wait].after} - {wait}
            yield [*asked[:at], replace(one, after=tuple(after)), *asked[at + 1 :]]


@pytest.mark.parametrize("seed", range(12))
def test_large_plans_are_legal_in_whatever_sequence_steps_begin_and_end(seed: int) -> None:
    chance = random.Random(seed)
    state = of_size(chance, count_of_hosts=12, count_of_vms=80, count_of_groups=25)
    cluster = Cluster(state)
    end = walked_end(cluster, chance, tries=400)
    found = order(pose(state, CLUSTER), end, NEVER)

    assert len(found.moves) > len(end) / 2
    asked = requests(found)
    for _ in range(30):
        assert cluster.replay(asked, chance) is None


@pytest.mark.system
def test_238_migrations_among_10_000_vms_are_ordered_at_once() -> None:
    state, where = repair(seed=7)
    problem = pose(state, CLUSTER)
    began = time.process_time()
    found = order(problem, where, NEVER)
    assert time.process_time() - began < seconds_here(PATIENCE_SECONDS)
    assert migrations(found) == MOVES
    assert Cluster(state).replay(requests(found), random.Random(1)) is None
