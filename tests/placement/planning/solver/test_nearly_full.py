"""Nearly full clusters: where no way leads to the best ends, others are sought; no move is made in vain."""

import random
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.planning import strategies
from ovirt_placement.planning.plan import NEVER, Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, pose
from ovirt_placement.planning.problem.problem import Move
from ovirt_placement.planning.sequence import shortened
from ovirt_placement.planning.strategies import StrategyName
from tests.builders import CLUSTER, SOFT_TOGETHER, TOGETHER, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.planning.clusters import scrambled, tangled
from tests.placement.planning.ordering.oracle import Cluster, Request
from tests.placement.planning.plans import moves


def planned(state: Snapshot) -> Plan:
    """Without a deadline, so that the load of a machine changes nothing."""
    return make_plan(state, CLUSTER, strategy=strategies.strategy(StrategyName.GREEDY), explained=False)


def left(state: Snapshot, plan: Plan) -> int:
    """Replay a plan as the definitions have it; how many hard rules are violated in the end."""
    cluster = Cluster(state)
    where = dict(cluster.start)
    for step in plan.steps:
        fault = cluster.why_not(where, {}, Request(step.vms, step.target))
        assert fault is None, f"{step}: {fault}"
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


def test_others_make_room_and_still_others_for_them() -> None:
    """To h3 the big one may go only once the one there is on h2, from which another must go to h4 before."""
    state = snapshot(
        host("h1", free_mb=0), host("h2", free_mb=4096), host("h3", free_mb=0), host("h4", free_mb=4096),
        vm("big", "h1", needs_mb=8192), vm("one", "h3", needs_mb=8192), vm("other", "h2", needs_mb=4096),
        group("on", vms="big", hosts_rule=TOGETHER, hosts="h3"),
    )  # fmt: skip
    assert moves(planned(state)) == ["other to h4", "one to h2", "big to h3"]


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
        if len(moves) < 10 and cluster.why_not(where, {}, request) is None:
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
        if cluster.why_not(where, {}, move) is not None:
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
