"""What the planner counts move by move says of each kind of rule what its definition says of the whole."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ovirt_placement.model import PlacementRule
from ovirt_placement.planning.problem.build_problem import pose
from ovirt_placement.planning.problem.placement import ProblemPlacement
from tests.builders import CLUSTER, host, snapshot, vm
from tests.examples import examples
from tests.placement.rules.placement_rules.drawn import placement_rules
from tests.placement.rules.placement_rules.oracle import concerns, lets_step, running, satisfied

HOSTS = ("h1", "h2", "h3", "h4")
VMS = ("a", "b", "c", "d")
MOVES = st.lists(st.tuples(st.sampled_from(VMS), st.sampled_from(HOSTS)), max_size=4)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(placement_rules("r", VMS, HOSTS), st.tuples(*[st.sampled_from(HOSTS)] * 4), MOVES)
def test_after_any_moves_a_count_agrees_with_the_definition(
    rule: PlacementRule, at: tuple[str, ...], moves: list[tuple[str, str]]
) -> None:
    vms = (
        vm(name, there, vcpus=1 + number % 2)
        for number, (name, there) in enumerate(zip(VMS, at, strict=True))
    )
    state = snapshot(*map(host, HOSTS), *vms, rule)
    problem = pose(state, CLUSTER)
    if not problem.goals:
        return
    (goal,) = problem.goals
    placement, where = ProblemPlacement(problem), running(state)
    for name, target in moves:
        placement.move((name,), target)
        where[name] = target
    assert placement.violated(goal) is not satisfied(rule, state, where)
    if satisfied(rule, state, running(state)) and not satisfied(rule, state, where):
        return  # no legal migrations lead there
    for name in VMS:
        for target in HOSTS:
            if concerns(rule, state, name) and where[name] != target:
                assert placement.admits(goal, name, target) is lets_step(rule, state, where, name, target)
