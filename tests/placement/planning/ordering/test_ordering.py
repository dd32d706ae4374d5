"""Orders of single cases: who goes first, who steps aside, who waits for whom, and what cannot be done."""

import pytest

from ovirt_placement.model import AffinityGroup, Host, Snapshot, Vm
from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.problem.build_problem import PlanOptions, pose
from tests.builders import APART, CLUSTER, SOFT_APART, TOGETHER, group, host, snapshot, vm
from tests.placement.planning.ordering.ordered import Order, order

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
