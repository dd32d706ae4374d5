"""Which moves are steps of a plan: those that the rules let pass, as far as there is time to ask them."""

from __future__ import annotations

from ovirt_placement.planning.plan import NO_TIME
from ovirt_placement.planning.problem.build_problem import pose
from ovirt_placement.planning.problem.problem import Move
from ovirt_placement.planning.verification import certify
from tests.builders import CLUSTER, host, snapshot, vm

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
