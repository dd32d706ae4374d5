"""The bound that knows of room: no end is better that brute force finds, and those that make way count."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.assignment.optimal.construction import Construction, relaxed
from ovirt_placement.planning.deadline import NEVER
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, pose
from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts
from ovirt_placement.planning.problem.score import Value
from tests.builders import CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.planning.brute_force import BruteForce
from tests.placement.planning.tiny_clusters import tiny_clusters

ALL = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}))


def bound_of(cluster: Snapshot) -> Value:
    """With all parts in it, whether they found room or not."""
    problem = pose(cluster, CLUSTER, options=ALL)
    construction = Construction(problem, CandidateHosts(problem))
    construction.run(NEVER)
    worse = tuple(1_000 for _ in range(problem.levels + 3))
    for built in construction.built:
        built.value = worse
    return relaxed(construction, NEVER).bound


@pytest.mark.system
@settings(max_examples=examples(150), deadline=None)
@given(tiny_clusters())
def test_no_end_is_better(cluster: Snapshot) -> None:
    hard, headroom_deficit, *others, migrations = bound_of(cluster)
    assert headroom_deficit == 0
    assert ((hard, *others), migrations) <= BruteForce(cluster).best()


def test_who_makes_way_counts() -> None:
    """On each host that will do one must leave, the largest first; from the third it takes two."""
    state = snapshot(
        *(host(f"h{number}", free_mb=1024) for number in range(3)), host("far"),
        vm("a", "far", needs_mb=4096), vm("b", "far", needs_mb=8192),
        *(vm(f"v{number}", f"h{number % 3}", needs_mb=3072) for number in range(9)),
        group("a", vms="a", hosts_rule=TOGETHER, hosts="h0 h1 h2"),
        group("b", vms="b", hosts_rule=TOGETHER, hosts="h0 h1 h2"),
    )  # fmt: skip
    assert bound_of(state) == (0, 0, 0, 2 + 1 + 3)
