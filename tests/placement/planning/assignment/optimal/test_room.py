"""The room on hosts in a model: where others have come by what was decided before, it counts as well."""

from __future__ import annotations

from ovirt_placement.planning.assignment.optimal.stages import put, solve
from ovirt_placement.planning.deadline import NEVER
from ovirt_placement.planning.problem.build_problem import pose
from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts
from ovirt_placement.planning.problem.placement import ProblemPlacement
from tests.builders import CLUSTER, TOGETHER, group, host, snapshot, vm


def test_who_made_way_does_not_come_back_where_another_has_come() -> None:
    state = snapshot(
        host("h0", free_mb=0), host("h1"), host("h2"),
        vm("a", "h1", needs_mb=2048), vm("b", "h0", needs_mb=2048),
        group("a", vms="a", hosts_rule=TOGETHER, hosts="h0"),
    )  # fmt: skip
    problem = pose(state, CLUSTER)
    placement = ProblemPlacement(problem)
    put(placement, {"a": "h0", "b": "h2"})
    solved = solve(placement, CandidateHosts(problem), {"b": ("h0", "h2")}, NEVER)
    assert solved is not None
    assert solved.where == {"b": "h2"}
