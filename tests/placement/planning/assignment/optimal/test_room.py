"""Models: the room on hosts where others have come by what was decided before, and the time they may take."""

from __future__ import annotations

from itertools import chain, repeat

from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.problem.build_problem import pose
from ovirt_placement.planning.problem.ends import CandidateHosts
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.solver.model import Model, ModelScope
from ovirt_placement.planning.solver.stages import solve
from tests.builders import CLUSTER, TOGETHER, group, host, snapshot, vm


def test_who_made_way_does_not_come_back_where_another_has_come() -> None:
    state = snapshot(
        host("h0", free_mb=0), host("h1"), host("h2"),
        vm("a", "h1", needs_mb=2048), vm("b", "h0", needs_mb=2048),
        group("a", vms="a", hosts_rule=TOGETHER, hosts="h0"),
    )  # fmt: skip
    problem = pose(state, CLUSTER)
    placement = ProblemPlacement(problem)
    placement.put({"a": "h0", "b": "h2"})
    solved = solve(placement, CandidateHosts(problem), {"b": ("h0", "h2")}, NEVER)
    assert solved is not None
    assert solved.where == {"b": "h2"}


def test_a_large_model_is_left_as_soon_as_the_time_is_over() -> None:
    hosts = [f"h{number}" for number in range(20)]
    vms = [f"v{number}" for number in range(100)]
    problem = pose(snapshot(*map(host, hosts), *(vm(name, "h0") for name in vms)), CLUSTER)
    scope = ModelScope(ProblemPlacement(problem), CandidateHosts(problem), dict.fromkeys(vms, tuple(hosts)))
    seconds = chain(repeat(1.0, 9), repeat(0.0))
    model = Model(scope, Deadline(lambda: next(seconds)))
    assert not model.whole
    assert len(model.at) == 9 * len(hosts)
    assert Model(scope).whole


def test_no_end_is_chosen_once_the_time_is_over() -> None:
    state = snapshot(
        host("h0"), host("h1"), vm("a", "h0"), group("a", vms="a", hosts_rule=TOGETHER, hosts="h1")
    )
    problem = pose(state, CLUSTER)
    placement, candidates = ProblemPlacement(problem), CandidateHosts(problem)
    assert solve(placement, candidates, {"a": ("h0", "h1")}, Deadline(lambda: 0.0)) is None
