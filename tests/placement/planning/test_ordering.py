"""Orders of moves: who goes first, steps aside or waits; the fewest, and legal whatever ends when."""

import random
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.planning.dependencies import waits
from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.problem.build_problem import PlanOptions, pose
from ovirt_placement.planning.problem.problem import Move
from tests.builders import APART, CLUSTER, SOFT_APART, TOGETHER, Part, group, host, snapshot, vm
from tests.placement.planning.brute_force import Cluster, Request
from tests.placement.planning.ordered import (
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

GIB = 1024


def ordered(state: Snapshot, options: PlanOptions | None = None, **where: str) -> Order:
    return order(pose(state, CLUSTER, options=options or PlanOptions()), where, NEVER)


def reported(found: Order) -> list[str]:
    """Moves in words, with the places of those that each waits for."""
    return [
        f"{'+'.join(sorted(one.move.vms))}>{one.move.host}"
        + (f" after {' '.join(map(str, one.after))}" if one.after else "")
        for one in found.moves
    ]


def big(name: str, on: str, gib: int = 8) -> Vm:
    return vm(name, on, needs_mb=gib * GIB)


def full(name: str, free_gib: int = 0) -> Host:
    return host(name, free_mb=free_gib * GIB)


def test_of_many_moves_the_first_repair_as_many_rules_as_they_can() -> None:
    """There may be time to check these alone: by names those of one large group came first."""
    crowd = [f"a{number:02}" for number in range(31)]
    pairs = [(f"b{number}", f"c{number}") for number in range(10)]
    state = snapshot(
        *map(host, [f"h{number}" for number in range(40)]), *(vm(one, "h0") for one in crowd),
        *(vm(one, f"h{at}") for at, pair in enumerate(pairs, 1) for one in pair),
        *(group(f"g{first}", APART, f"{first} {second}") for first, second in pairs),
        group("soft", SOFT_APART, "b0 b1"), group("crowd", APART, " ".join(crowd)),
    )  # fmt: skip
    away = {one: f"h{at}" for at, one in enumerate(crowd[1:], 1)}
    moves = ordered(state, **away, **{first: "h39" for first, _ in pairs}).moves
    assert [next(iter(one.move.vms)) for one in moves[:10]] == [first for first, _ in pairs]
    assert len(moves) == 40


SWAP = (
    full("h1"), full("h2", 4), full("h3", 4), big("a", "h1"), big("b", "h2"), big("c", "h2", 4),
    group("g1", vms="a", hosts_rule=TOGETHER, hosts="h2"),
    group("g2", vms="b", hosts_rule=TOGETHER, hosts="h1"),
)  # fmt: skip
MINDS = group("soft", vms="c", hosts_rule=SOFT_APART, hosts="h3")
AND_BACK = "c>h3, a>h2 after 0, b>h1 after 1, c>h2 after 2"


@pytest.mark.parametrize(
    ("parts", "options", "where", "expected"),
    [
        pytest.param(
            (full("h1"), full("h2"), full("h3", 4), big("a", "h1"), big("b", "h2"), vm("c", "h1"),
             vm("d", "h1"), group("g", APART, "c d")),
            {}, "a h2, b h1, c h3", "c>h3", id="what repairs goes on where a swap is stuck",
        ),
        pytest.param(
            (full("h1"), full("h2"), full("h3", 4), big("a", "h1"), big("b", "h2", 4), vm("c", "h2")),
            {}, "a h2, b h3", "", id="what goes only for one that is stuck stays",
        ),
        pytest.param((*SWAP, MINDS), {}, "a h2, b h1", AND_BACK, id="a bystander comes back for a soft rule"),
        pytest.param(SWAP, {"memory_headroom": 0.05}, "a h2, b h1", AND_BACK, id="and for the headroom"),
        pytest.param(
            (host("h1"), full("h2", 1), host("h3"), vm("a", "h1"), vm("y", "h3"), vm("z", "h3"),
             group("g", APART, "y z")),
            {}, "a h2, z h1", "z>h1, a>h2", id="what repairs a hard rule goes first",
        ),
        pytest.param(
            (full("h1", -8), host("h2"), big("a", "h2", 4), big("b", "h1", 8), big("c", "h1", 4)),
            {}, "a h1, b h2, c h2", "b>h2, c>h2, a>h1 after 0 1",
            id="a host that owes memory gets it back before anyone comes",
        ),
    ],
)  # fmt: skip
def test_moves_in_order(
    parts: tuple[Part, ...], options: dict[str, float], where: str, expected: str
) -> None:
    wanted = dict(one.split() for one in where.split(", "))
    found = ordered(snapshot(*parts), PlanOptions(**options), **wanted)
    assert ", ".join(reported(found)) == expected
    assert found.stuck == wanted.keys() - {vm for one in found.moves for vm in one.move.vms}


@pytest.mark.parametrize(
    "moves",
    [
        pytest.param([Move(("c",), "h2"), Move(("a", "b"), "h2")], id="the engine would take it along"),
        pytest.param([Move(("d",), "h1"), Move(("d",), "h2")], id="it is still on its way"),
    ],
)
def test_what_leaves_a_host_waits_for_what_comes_and_goes_there(moves: list[Move]) -> None:
    members = [*(vm(name, "h1") for name in "abc"), vm("d", "h2"), vm("e", "h2")]
    state = snapshot(host("h1"), host("h2"), *members, group("g", TOGETHER, "a b c d e"))
    assert waits(pose(state, CLUSTER), moves) == ((), (0,))


def test_vms_that_gather_where_one_stays_all_go_at_once() -> None:
    members = [vm(f"v{number}", f"h{number}") for number in range(6)]
    group_of_all = group("g", TOGETHER, " ".join(f"v{number}" for number in range(6)))
    state = snapshot(*(host(f"h{number}") for number in range(6)), *members, group_of_all)
    found = order(pose(state, CLUSTER), {f"v{number}": "h0" for number in range(1, 6)}, NEVER)
    assert [one.after for one in found.moves] == [()] * 5


def test_when_time_is_up_what_is_known_is_answered() -> None:
    state = snapshot(full("h1"), full("h2"), full("h3", 8), big("a", "h1"), big("b", "h2"))
    found = order(pose(state, CLUSTER), {"a": "h2", "b": "h1"}, Deadline(lambda: 0.0))
    assert (found.moves, found.stuck) == ((), {"a", "b"})


SEEDS = range(20)
PER_SEED = 25
#: Twenty times what it takes.
PATIENCE_SECONDS = 2.0


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
