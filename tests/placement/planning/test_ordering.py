"""Orders of moves: who goes first, steps aside or waits; the fewest, and legal whatever ends when."""

import random
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ovirt_placement.model import AffinityGroup, Host, Snapshot, Vm
from ovirt_placement.planning.dependencies import waits
from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.problem.build_problem import PlanOptions, pose
from ovirt_placement.planning.problem.problem import Move
from tests.builders import APART, CLUSTER, SOFT_APART, TOGETHER, group, host, snapshot, vm
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


def test_what_needs_no_other_waits_for_nobody() -> None:
    state = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), vm("c", "h2"))
    assert reported(ordered(state, a="h2", b="h2", c="h1")) == ["a>h2", "b>h2", "c>h1"]


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


def test_a_swap_goes_through_a_third_host() -> None:
    state = snapshot(full("h1"), full("h2"), full("h3", 8), big("a", "h1"), big("b", "h2"))
    found = ordered(state, a="h2", b="h1")
    assert reported(found) == ["a>h3", "b>h1 after 0", "a>h2 after 1"]


def test_a_swap_that_no_host_helps_is_stuck_and_what_repairs_goes_on() -> None:
    state = snapshot(
        full("h1"), full("h2"), full("h3", 4), big("a", "h1"), big("b", "h2"), vm("c", "h1"), vm("d", "h1"),
        group("g", APART, "c d"),
    )  # fmt: skip
    found = ordered(state, a="h2", b="h1", c="h3")
    assert reported(found) == ["c>h3"]
    assert found.stuck == {"a", "b"}


def test_a_vm_that_goes_only_for_one_that_is_stuck_stays() -> None:
    state = snapshot(full("h1"), full("h2"), full("h3", 4), big("a", "h1"), big("b", "h2", 4), vm("c", "h2"))
    found = ordered(state, a="h2", b="h3")
    assert found.moves == ()
    assert found.stuck == {"a", "b"}


def swap_with_bystander(*also: AffinityGroup) -> Snapshot:
    return snapshot(
        full("h1"), full("h2", 4), full("h3", 4), big("a", "h1"), big("b", "h2"), big("c", "h2", 4),
        group("g1", vms="a", hosts_rule=TOGETHER, hosts="h2"),
        group("g2", vms="b", hosts_rule=TOGETHER, hosts="h1"),
        *also,
    )  # fmt: skip


def test_a_bystander_makes_room_and_need_not_come_back() -> None:
    found = ordered(swap_with_bystander(), a="h2", b="h1")
    assert reported(found) == ["c>h3", "a>h2 after 0", "b>h1 after 1"]


def test_a_bystander_comes_back_where_a_soft_rule_minds() -> None:
    state = swap_with_bystander(group("soft", vms="c", hosts_rule=SOFT_APART, hosts="h3"))
    found = ordered(state, a="h2", b="h1")
    assert reported(found) == ["c>h3", "a>h2 after 0", "b>h1 after 1", "c>h2 after 2"]


def test_a_bystander_comes_back_where_it_would_take_the_headroom() -> None:
    options = PlanOptions(memory_headroom=0.05)
    found = ordered(swap_with_bystander(), options, a="h2", b="h1")
    assert reported(found)[-1] == "c>h2 after 2"


def test_a_group_that_stands_together_moves_at_once() -> None:
    state = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", TOGETHER, "a b"))
    assert reported(ordered(state, a="h2", b="h2")) == ["a+b>h2"]


def test_a_group_that_is_split_gathers_before_it_moves_on() -> None:
    state = snapshot(
        host("h1"), host("h2"), host("h3"), vm("a", "h1"), vm("b", "h2"), group("g", TOGETHER, "a b")
    )
    found = ordered(state, a="h3", b="h3")
    assert len(found.moves) == 2
    assert reported(found)[1] == "a+b>h3 after 0"


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


def test_what_repairs_a_hard_rule_goes_first() -> None:
    state = snapshot(
        host("h1"), full("h2", 1), host("h3"), vm("a", "h1"), vm("y", "h3"), vm("z", "h3"),
        group("g", APART, "y z"),
    )  # fmt: skip
    assert reported(ordered(state, a="h2", z="h1"))[0] == "z>h1"


def test_a_host_that_owes_memory_gets_it_back_before_anyone_comes() -> None:
    state = snapshot(full("h1", -8), host("h2"), big("a", "h2", 4), big("b", "h1", 8), big("c", "h1", 4))
    assert reported(ordered(state, a="h1", b="h2", c="h2")) == ["b>h2", "c>h2", "a>h1 after 0 1"]


def test_when_time_is_up_what_is_known_is_answered() -> None:
    state = snapshot(full("h1"), full("h2"), full("h3", 8), big("a", "h1"), big("b", "h2"))
    found = order(pose(state, CLUSTER), {"a": "h2", "b": "h1"}, Deadline(lambda: 0.0))
    assert found.moves == ()
    assert found.stuck == {"a", "b"}


@pytest.mark.parametrize("free_gib", [0, 4])
def test_a_vm_that_has_arrived_is_not_moved_again(free_gib: int) -> None:
    state = snapshot(full("h1", free_gib), full("h2", 8), big("a", "h1"))
    assert ordered(state, a="h1").moves == ()


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
