"""Nearly full clusters: where no way leads to the best ends, others are sought; no move is made in vain."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

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
from tests.builders import CLUSTER, SOFT_TOGETHER, TOGETHER, Part, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.planning.clusters import scrambled, tangled
from tests.placement.planning.ordering.oracle import Cluster, Request


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
    moves = [(*step.vms, step.target) for step in planned(state).steps]
    assert moves == [("other", "h4"), ("one", "h2"), ("big", "h3")]


GIB = 1024
WANTED = PlanOptions(repair=frozenset({Repair.SOFT}))


class Scene(NamedTuple):
    """Hosts and VMs, where VMs are wanted, and legal moves that bring them there, some of them needlessly."""

    parts: list[Part]
    wanted: dict[str, str]
    moves: list[Request]


def room(name: str, free: int) -> Part:
    return host(name, memory_mb=0, free_mb=free * GIB)


def swap(draw: st.DrawFn, name: str) -> Scene:
    """Two change places by a third host: none can go straight there."""
    one, two, third = (f"{name}-{letter}" for letter in "abc")
    large = draw(st.integers(1, 2))
    parts = [room(one, 0), room(two, 0), room(third, draw(st.integers(large, 3)))]
    vms = [vm(f"{name}1", one, needs_mb=large * GIB), vm(f"{name}2", two, needs_mb=large * GIB)]
    moves = [(f"{name}1", third), (f"{name}2", one), (f"{name}1", two)]
    return Scene(
        [*parts, *vms], {f"{name}1": two, f"{name}2": one}, [Request((who,), where) for who, where in moves]
    )


def row(draw: st.DrawFn, name: str) -> Scene:
    """Each goes where the one before it was; the first by detours, some of which it could do without.

    Whether its last host has room for it from the beginning is drawn: a bystander may have to leave before.
    """
    count = draw(st.integers(1, 3))
    parts: list[Part] = [room(f"{name}-{number}", draw(st.integers(0, 1))) for number in range(count)]
    parts += [vm(f"{name}{number}", f"{name}-{number}", needs_mb=2 * GIB) for number in range(count)]
    parts += [room(f"{name}-{place}", 2) for place in ("park", "yard")]
    blocked = draw(st.booleans())
    parts += [room(f"{name}-end", 0 if blocked else 2), room(f"{name}-away", 2)]
    wanted = {f"{name}{number}": f"{name}-{number - 1}" for number in range(1, count)} | {
        f"{name}0": f"{name}-end"
    }
    first = [
        Request((f"{name}0",), f"{name}-{stop}")
        for stop in draw(st.sampled_from([["park"], ["park", "yard"]]))
    ]
    later = [Request((f"{name}{number}",), f"{name}-{number - 1}") for number in range(1, count)]
    if blocked:
        parts.append(vm(f"{name}x", f"{name}-end", needs_mb=2 * GIB))
        wanted[f"{name}x"] = f"{name}-away"
        later.insert(draw(st.integers(0, len(later))), Request((f"{name}x",), f"{name}-away"))
    return Scene(parts, wanted, [*first, *later, Request((f"{name}0",), f"{name}-end")])


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Some of both, interleaved."""
    kinds = draw(st.lists(st.sampled_from([swap, row, row]), min_size=1, max_size=3))
    drawn = [kind(draw, f"v{number}") for number, kind in enumerate(kinds)]
    left = [list(scene.moves) for scene in drawn]
    moves: list[Request] = []
    while any(left):
        some = [one for one in left if one]
        moves.append(draw(st.sampled_from(some)).pop(0))
    return Scene(
        [part for scene in drawn for part in scene.parts],
        {who: where for scene in drawn for who, where in scene.wanted.items()},
        moves,
    )


def variants(moves: Sequence[Request]) -> Iterator[list[Request]]:
    """All of a VM left out; one move left out; the last host of a VM at once, when it first moves."""
    for vms in {move.vms for move in moves}:
        yield [move for move in moves if move.vms != vms]
    for at, move in enumerate(moves):
        again = [later for later in range(at + 1, len(moves)) if moves[later].vms == move.vms]
        yield [*moves[:at], *moves[at + 1 :]]
        for later in again:
            between = [
                other for number, other in enumerate(moves) if at < number < later and number not in again
            ]
            yield [*moves[:at], Request(move.vms, moves[later].host), *between, *moves[later + 1 :]]


def worth(scene: Scene, cluster: Cluster, moves: Sequence[Request]) -> tuple[int, int] | None:
    """VMs that are not where they are wanted, and migrations; None if a move is not legal."""
    where = dict(cluster.start)
    for move in moves:
        if cluster.why_not(where, {}, move) is not None:
            return None
        where |= dict.fromkeys(move.vms, move.host)
    return sum(where[who] != wanted for who, wanted in scene.wanted.items()), len(moves)


@settings(max_examples=examples(200))
@given(scenes())
def test_no_move_can_be_left_out_and_no_detour_be_cut(scene: Scene) -> None:
    wishes = (
        group(f"g-{who}", vms=who, hosts_rule=SOFT_TOGETHER, hosts=where)
        for who, where in scene.wanted.items()
    )
    state = snapshot(*scene.parts, *wishes)
    cluster = Cluster(state)
    given_worth = worth(scene, cluster, scene.moves)
    assert given_worth is not None
    moves = tuple(Move(one.vms, one.host) for one in scene.moves)
    found = shortened(pose(state, CLUSTER, options=WANTED), moves, NEVER)
    shorter = [Request(one.vms, one.host) for one in found]
    best = worth(scene, cluster, shorter)
    assert best is not None
    assert best <= given_worth
    for variant in variants(shorter):
        other = worth(scene, cluster, variant)
        assert other is None or other >= best
