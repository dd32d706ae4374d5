"""What each step is said to be for, where it repairs nothing itself."""

from __future__ import annotations

from ovirt_placement.answers.plans.plan import reason
from ovirt_placement.planning.problem.build_problem import pose
from ovirt_placement.planning.problem.problem import Move
from ovirt_placement.planning.requests import Moved, plan_back
from ovirt_placement.planning.verification import certify
from tests.builders import CLUSTER, TOGETHER, group, host, snapshot, vm


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
