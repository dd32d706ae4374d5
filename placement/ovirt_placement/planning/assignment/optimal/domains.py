"""Fewer hosts, fewer variables: of hosts that are alike to a part, only as many as it can need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from ovirt_placement.planning.assignment.optimal.model import goals_of
from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.rules.forms import AtLeast, Even, OnePlace, Sum


def reduced(
    placement: ProblemPlacement,
    candidates: CandidateHosts,
    vms: Collection[str],
    order: Sequence[str],
    more: int = 0,
) -> Mapping[str, tuple[str, ...]]:
    """The hosts that each of these VMs is offered: all that differ, and enough of those that are alike.

    Of hosts that are alike the first in `order` are kept. Without regard to room nothing is lost by it.
    """
    problem = placement.problem
    moving = movable(candidates, vms)
    kept = {host for host, _ in kinds(placement, candidates, moving, order, more)}
    return {
        vm: tuple(
            host
            for host in candidates.of(vm)
            if host in kept or host in (problem.where[vm], placement.where(vm))
        )
        for vm in moving
    }


def movable(candidates: CandidateHosts, vms: Collection[str]) -> list[str]:
    return sorted(vm for vm in vms if len(candidates.of(vm)) > 1)


def kinds(
    placement: ProblemPlacement,
    candidates: CandidateHosts,
    moving: Collection[str],
    order: Sequence[str],
    more: int,
) -> list[tuple[str, bool]]:
    """Enough hosts of each kind, and of each whether it stands for others that are left out."""
    problem = placement.problem
    goals = goals_of(problem, moving)
    needed = _needed(goals, moving) + more
    marks = _marks(placement, goals, moving)
    reaches = list(
        {id(one): one for one in map(frozenset, {candidates.of(vm)[1:] for vm in moving})}.values()
    )
    alike: defaultdict[object, list[str]] = defaultdict(list)
    for host in order:
        reached = tuple(host in one for one in reaches)
        kind = (marks.get(host), reached, tuple(_listed(goals, host)), *_places(goals, host))
        alike[kind].append(host)
    return [(host, len(hosts) > needed) for hosts in alike.values() for host in hosts[:needed]]


def _needed(goals: Collection[Goal], moving: Collection[str]) -> int:
    """Hosts of one kind that an end can need: a VM that nothing but peers draw needs none of its own."""
    gathers = sum(goal.gathers for goal in goals)
    driven = {vm for goal in goals if not goal.gathers for vm in goal.vms}
    return max(1, min(len(moving), len(driven.intersection(moving)) + gathers))


def _marks(
    placement: ProblemPlacement, goals: Collection[Goal], moving: Collection[str]
) -> Mapping[str, object]:
    """What distinguishes a host: which movable VMs are there, and how many of each goal stay."""
    problem = placement.problem
    free = set(moving)
    starting: defaultdict[str, list[object]] = defaultdict(list)
    for vm in moving:
        starting[problem.where[vm]].append(vm)
    for goal in goals:
        staying: defaultdict[str, list[str]] = defaultdict(list)
        for vm in goal.vms if goal.sum is None else ():
            if vm not in free:
                staying[placement.where(vm)].append(vm)
        for host, vms in staying.items():
            starting[host].append((goal.number, _share(goal, vms)))
    return {host: tuple(marks) for host, marks in starting.items()}


def _share(goal: Goal, vms: Collection[str]) -> object:
    """All that counts of members that stay on a host."""
    if goal.limit is None:
        return min(len(vms), 2)
    return frozenset(goal.limit.sets(vms)) if goal.limit.set_of else min(len(vms), goal.limit.most + 1)


def _places(goals: Collection[Goal], host: str) -> list[str]:
    """The failure domains that limits count by."""
    limits = (goal.limit for goal in goals if goal.limit is not None)
    others = (goal.form for goal in goals if isinstance(goal.form, OnePlace | Even | AtLeast))
    return [
        *(limit.place(host) for limit in limits if limit.place_of),
        *(form.place_of.get(host, "") for form in others),
    ]


def _listed(goals: Collection[Goal], host: str) -> list[bool]:
    sums = (goal.form for goal in goals if isinstance(goal.form, Sum))
    return [
        *(goal.right(host) for goal in goals if goal.allowed is not None),
        *(host in form.hosts for form in sums),
    ]


def roomiest(placement: ProblemPlacement) -> list[str]:
    """Hosts that may take VMs, the emptiest first; those that are kept for failover are the last."""
    problem = placement.problem
    place = {host: number for number, host in enumerate(problem.hosts)}

    def rank(host: str) -> tuple[bool, float, int]:
        free = placement.free_mb(host) / max(1, problem.size_mb[host])
        return host in problem.failover, -round(free, 3), place[host]

    return sorted(problem.hosts, key=rank)
