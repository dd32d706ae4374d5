"""Clusters and groups at whose size others give up: plans are legal, near their bound, and take seconds."""

import random
import time
from collections.abc import Iterator, Sequence
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.planning import strategies
from ovirt_placement.planning.plan import NEVER, Deadline, Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, legal, pose
from ovirt_placement.planning.problem.problem import Move
from ovirt_placement.planning.sequence import shortened
from ovirt_placement.planning.steps import apply
from ovirt_placement.planning.strategies import StrategyName, strategy
from ovirt_placement.rules.catalogue import find_violations
from tests.builders import APART, CLUSTER, SOFT_TOGETHER, TOGETHER, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.planning.brute_force import Cluster, Request
from tests.placement.planning.clusters import scrambled, tangled
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


def planned(state: Snapshot) -> Plan:
    """Without a deadline, so that the load of a machine changes nothing."""
    return make_plan(state, CLUSTER, strategy=strategies.strategy(StrategyName.GREEDY), explained=False)


def left(state: Snapshot, plan: Plan) -> int:
    """Replay a plan as the definitions have it; how many hard rules are violated in the end."""
    cluster = Cluster(state)
    where = dict(cluster.start)
    for step in plan.steps:
        assert cluster.may_begin(where, {}, Request(step.vms, step.target)), step
        where |= dict.fromkeys(step.vms, step.target)
    return cluster.violated(where)


@pytest.mark.parametrize("seed", range(12))
def test_what_can_be_repaired_for_certain_is_repaired_to_the_last_rule(seed: int) -> None:
    state = scrambled(seed)
    assert left(state, planned(state)) == 0


@pytest.mark.system
def test_what_no_order_of_the_best_end_repairs_is_repaired_by_another_end() -> None:
    state = tangled(20)
    plan = planned(state)
    assert plan == planned(state)
    assert left(state, plan) == 0


@pytest.mark.nightly
def test_of_what_may_be_beyond_repair_little_is_left() -> None:
    """Which rule of one cluster is left hangs on the order of tries; of several, how many does not."""
    states = [tangled(seed) for seed in (0, 1, 5, 12, 21)]
    assert sum(left(state, planned(state)) for state in states) <= 8


WANTED = PlanOptions(repair=frozenset({Repair.SOFT}))


def walk(seed: int) -> tuple[Snapshot, list[Request]]:
    """Legal moves among full hosts, many of them needless; VMs are wanted where they end.

    Two change places by a third host meanwhile, so that not all can go straight to their ends.
    """
    chance = random.Random(seed)
    hosts, vms = ["h1", "h2", "h3", "h4"], [f"v{number}" for number in range(chance.randint(2, 4))]
    state = snapshot(
        *(host(one, free_mb=chance.choice([0, 0, 2048, 3072])) for one in hosts),
        *(vm(one, chance.choice(hosts), needs_mb=2048) for one in vms),
        host("one", free_mb=0), host("other", free_mb=0), host("third", free_mb=2048),
        vm("x", "one", needs_mb=2048), vm("y", "other", needs_mb=2048),
    )  # fmt: skip
    swap = [Request(("x",), "third"), Request(("y",), "one"), Request(("x",), "other")]
    cluster, moves = Cluster(state), list[Request]()
    where = dict(cluster.start)
    for _ in range(30):
        request = Request((chance.choice(vms),), chance.choice(hosts))
        if swap and chance.random() < 0.2:
            request = swap.pop(0)
        if len(moves) < 10 and cluster.may_begin(where, {}, request):
            moves.append(request)
            where |= dict.fromkeys(request.vms, request.host)
    moved = {one for move in moves for one in move.vms}
    wishes = (group(f"g-{one}", vms=one, hosts_rule=SOFT_TOGETHER, hosts=where[one]) for one in sorted(moved))
    return snapshot(*state.hosts, *state.vms, *wishes), moves


def variants(moves: Sequence[Request]) -> Iterator[list[Request]]:
    """All of a VM left out; one move left out; the next host of a VM in place of one."""
    for vms in {move.vms for move in moves}:
        yield [move for move in moves if move.vms != vms]
    for at, move in enumerate(moves):
        rest = [*moves[:at], *moves[at + 1 :]]
        yield rest
        again = next((later for later in range(at, len(rest)) if rest[later].vms == move.vms), None)
        if again is not None:
            yield [*moves[:at], rest[again], *rest[at:again], *rest[again + 1 :]]


def worth(state: Snapshot, cluster: Cluster, moves: Sequence[Request]) -> tuple[int, int] | None:
    """VMs that are not where they are wanted, and migrations; None if a move is not legal."""
    where = dict(cluster.start)
    for move in moves:
        if not cluster.may_begin(where, {}, move):
            return None
        where |= dict.fromkeys(move.vms, move.host)
    return sum(where[one.vms[0]] != one.hosts[0] for one in state.affinity_groups), len(moves)


@settings(max_examples=examples(200))
@given(st.integers(0, 10**9))
def test_no_move_can_be_left_out_and_no_detour_be_cut(seed: int) -> None:
    state, asked = walk(seed)
    cluster = Cluster(state)
    walked = tuple(Move(one.vms, one.host) for one in asked)
    found = shortened(pose(state, CLUSTER, options=WANTED), walked, NEVER)
    shorter = [Request(one.vms, one.host) for one in found]
    best = worth(state, cluster, shorter)
    assert best is not None
    assert best <= (0, len(asked))
    for variant in variants(shorter):
        other = worth(state, cluster, variant)
        assert other is None or other >= best
