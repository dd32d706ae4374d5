"""Another end as good, where the VMs of the one that was found block each other."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.detours import direct_moves
from ovirt_placement.planning.plan import NEVER
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import pose
from ovirt_placement.planning.problem.ends import CandidateHosts
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.solver.strategy import straight_end
from tests.builders import APART, CLUSTER, group, host, snapshot, vm
from tests.placement.planning.tight_clusters import scrambled

#: Of each pair one must leave a full host; only the third host has room, for one VM.
FULL = snapshot(
    host("h1", free_mb=0), host("h2", free_mb=0), host("h3", free_mb=2048),
    *(vm(name, "h1", needs_mb=2048) for name in "ab"), *(vm(name, "h2", needs_mb=2048) for name in "cd"),
    group("ab", APART, "a b"), group("cd", APART, "c d"),
)  # fmt: skip
#: Each of the first pair may be with neither of the other one: these wait for no room.
RIVALS = snapshot(
    *(host(f"h{number}") for number in (1, 2, 3)),
    vm("a", "h1"), vm("b", "h1"), vm("c", "h2"), vm("d", "h2"),
    group("ab", APART, "a b"), group("cd", APART, "c d"), group("ac", APART, "a c"),
)  # fmt: skip


def found(state: Snapshot, where: Mapping[str, str]) -> Mapping[str, str] | None:
    problem = pose(state, CLUSTER)
    placement = ProblemPlacement(problem)
    placement.put(where)
    return straight_end(placement, CandidateHosts(problem), NEVER)


@pytest.mark.parametrize("state", [FULL, RIVALS])
def test_vms_that_would_change_places_go_one_after_the_other(state: Snapshot) -> None:
    other = found(state, {"a": "h2", "c": "h1"})
    assert other is not None
    assert len(direct_moves(ProblemPlacement(pose(state, CLUSTER)), other)) == len(other) == 2


def test_an_end_to_which_all_go_straight_is_kept() -> None:
    assert found(FULL, {"a": "h3", "c": "h1"}) is None


@pytest.mark.system
@pytest.mark.parametrize(("seed", "migrations"), [(0, 5), (13, 9)])
def test_where_some_order_needs_no_detour_a_plan_is_proven(seed: int, migrations: int) -> None:
    plan = make_plan(scrambled(seed), CLUSTER, explained=False)
    assert (plan.proven, plan.migrations, plan.remaining) == (True, migrations, ())
