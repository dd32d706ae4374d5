"""Which moves are steps of a plan, as far as there is time to ask; what each is for, how long it takes."""

import pytest

from ovirt_placement.answers.plans import reason
from ovirt_placement.planning.plan import NO_TIME
from ovirt_placement.planning.problem.build_problem import pose
from ovirt_placement.planning.problem.problem import Move
from ovirt_placement.planning.requests import Moved, plan_back
from ovirt_placement.planning.verification import Pace, certify, migration_seconds, step_seconds
from tests.builders import CLUSTER, TOGETHER, group, host, snapshot, vm

STATE = snapshot(
    host("h1"), host("h2", free_mb=1024),
    *(vm(name, "h1", needs_mb=1024) for name in "ab"), vm("c", "h2", needs_mb=1024),
)  # fmt: skip


def test_a_move_for_which_there_is_no_room_is_refused() -> None:
    found = certify(STATE, pose(STATE, CLUSTER), [Move(("a",), "h2"), Move(("b",), "h2")])
    assert [step.vms for step in found.steps] == [("a",)]
    assert found.refused is not None
    assert (found.refused.vms, found.whole) == (("b",), False)


def test_a_small_plan_is_checked_as_a_whole_however_late_it_is() -> None:
    moves = [Move(("c",), "h1"), Move(("a",), "h2"), Move(("b",), "h2")]
    found = certify(STATE, pose(STATE, CLUSTER), moves, NO_TIME)
    assert (found.whole, [step.after for step in found.steps]) == (True, [(), (), (0,)])


def test_a_large_plan_ends_where_time_does() -> None:
    moves = [Move(("a",), "h2" if number % 2 else "h1") for number in range(1, 50)]
    found = certify(STATE, pose(STATE, CLUSTER), moves, NO_TIME)
    assert (found.refused, found.whole) == (None, False)
    assert 0 < len(found.steps) < len(moves)


def test_a_vm_makes_room_and_goes_back_or_on() -> None:
    state = snapshot(
        host("h1"), host("h2"), host("h3"), host("h4"), vm("a", "h1"), vm("b", "h2"), vm("c", "h2"),
        group("on", vms="a", hosts_rule=TOGETHER, hosts="h2"),
    )  # fmt: skip
    moves = [("b", "h3"), ("c", "h3"), ("a", "h2"), ("b", "h2"), ("c", "h4")]
    ordered = [Move((one,), target) for one, target in moves]
    steps = certify(state, pose(state, CLUSTER), ordered).steps
    assert [reason(step, state) for step in steps] == [
        "makes room for the next steps",
        "makes room for the next steps",
        "repairs affinity group on",
        "goes back to where it was",
        "moves on from its temporary host",
    ]


def test_the_way_back_makes_no_room() -> None:
    state = snapshot(host("h1"), host("h2"), vm("a", "h2"))
    (step,) = plan_back(state, CLUSTER, (Moved("a", "h1", "h2"),), {}).plan.steps
    assert reason(step, state) == "goes back to where it was"


PACE = Pace(host_mb_per_second=100.0, at_once=2, overhead_seconds=10.0)


def test_the_memory_goes_over_the_wire_once() -> None:
    assert migration_seconds(4096, PACE) == pytest.approx(10 + 4096 / 50)


def test_memory_that_is_written_meanwhile_goes_again() -> None:
    assert migration_seconds(5000, PACE, dirty_mb_per_second=25) == pytest.approx(
        10 + 2 * 5000 / 50, rel=0.01
    )


def test_a_guest_that_writes_faster_than_can_be_sent_still_ends() -> None:
    assert migration_seconds(1000, PACE, dirty_mb_per_second=50) == pytest.approx(10 + 8 * 1000 / 50)


def test_only_memory_in_use_is_sent_and_all_where_nobody_knows() -> None:
    known, unknown = (vm("a", "h1", memory_mb=1024, usage_mem_percent=percent) for percent in (25, None))
    assert step_seconds([known], PACE) == pytest.approx(migration_seconds(256, PACE))
    assert step_seconds([unknown], PACE) == pytest.approx(migration_seconds(1024, PACE))


def test_a_group_that_moves_at_once_queues_on_its_host() -> None:
    one = step_seconds([vm("a", "h1")], PACE)
    assert step_seconds([vm("a", "h1"), vm("b", "h1")], PACE) == pytest.approx(one)
    assert step_seconds([vm(name, "h1") for name in "abcdef"], PACE) == pytest.approx(3 * one)


def test_the_longest_of_a_group_may_outlast_the_others() -> None:
    large, small = vm("a", "h1", needs_mb=65536), vm("b", "h1")
    assert step_seconds([large, small], PACE) == pytest.approx(step_seconds([large], PACE))
