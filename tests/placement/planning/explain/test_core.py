"""The set that is said to block a rule blocks it, and no piece of it could be left out: by brute force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import NEVER, ObstacleKind
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, pose
from ovirt_placement.planning.problem.problem import Goal, Problem
from ovirt_placement.planning.solver.core import Element, core
from ovirt_placement.rules.affinity.constraints import OnHosts, Together
from tests.builders import APART, CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.placement.planning.assignment.clusters import drawn

Placement = dict[str, str]


def holds(goal: Goal, placement: Placement) -> bool:
    hosts = [placement[one] for one in goal.vms if one in placement]
    if isinstance(goal.constraint, OnHosts):
        return all((one in goal.constraint.hosts) is goal.constraint.positive for one in hosts)
    return len(set(hosts)) == (1 if isinstance(goal.constraint, Together) else len(hosts))


def respected(problem: Problem, element: Element, placement: Placement) -> bool:
    """Whether a placement keeps to one piece of what is said to block."""
    if element.goal is not None:
        return holds(element.goal, placement)
    first, before = element.ids[0], problem.where
    if element.kind is ObstacleKind.STAYS:
        return placement[first] == before[first]
    if element.kind is ObstacleKind.TARGETS:
        return placement[first] in {*problem.targets[first], before[first]}
    coming = [one for one, now in placement.items() if now == first != before[one]]
    leaving = [one for one, now in placement.items() if now != first == before[one]]
    more_mb = sum(problem.memory_mb[one] for one in coming) - sum(problem.memory_mb[one] for one in leaving)
    return not coming or more_mb <= problem.free_mb[first]


def free(problem: Problem, goal: Goal) -> set[str]:
    """VMs of the goal, and those that hard rules tie to them; nobody asks what else might move."""
    found = set(goal.vms)
    while more := {
        vm
        for other in problem.goals
        if other.hard and found.intersection(other.vms)
        for vm in other.vms
        if vm not in found
    }:
        found |= more
    return found


def ways_out(problem: Problem, goal: Goal, elements: Sequence[Element]) -> Iterator[Placement]:
    """Placements in which the goal is satisfied and that keep to all of these pieces."""
    vms, able = sorted(problem.where), free(problem, goal)
    choices = [dict.fromkeys((problem.where[one], *(problem.hosts if one in able else ()))) for one in vms]
    for hosts in product(*choices):
        placement = dict(zip(vms, hosts, strict=True))
        if holds(goal, placement) and all(respected(problem, one, placement) for one in elements):
            yield placement


def check(state: Snapshot) -> int:
    """How many violated goals are blocked."""
    problem = pose(state, CLUSTER, options=PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT})))
    blocked = 0
    for goal in problem.goals:
        blocking = None if goal.satisfied else core(problem, goal, NEVER)
        if blocking is not None:
            blocked += 1
            assert next(ways_out(problem, goal, blocking), None) is None
            for one in blocking:
                others = [other for other in blocking if other is not one]
                assert next(ways_out(problem, goal, others), None) is not None
    return blocked


@pytest.mark.parametrize("seed", range(0, 200, 40))
def test_it_blocks_and_none_of_it_is_too_much(seed: int) -> None:
    assert sum(check(drawn(one, hosts=3, vms=5)) for one in range(seed, seed + 40))


def test_what_nothing_blocks_has_no_such_set() -> None:
    state = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", APART, "a b"))
    problem = pose(state, CLUSTER)
    assert core(problem, problem.goals[0], NEVER) is None


def test_two_rules_that_contradict_each_other_are_named_and_nothing_else() -> None:
    state = snapshot(
        host("h1"), host("h2"), host("h3"), vm("a", "h1"), vm("b", "h2"), vm("c", "h3"),
        group("with", TOGETHER, "a b"), group("without", APART, "a b"), group("other", APART, "b c"),
    )  # fmt: skip
    problem = pose(state, CLUSTER)
    (violated,) = (goal for goal in problem.goals if not goal.satisfied)
    found = core(problem, violated, NEVER)
    assert found is not None
    assert [one.ids for one in found] == [("without",)]
