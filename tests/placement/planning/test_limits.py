"""Limits of how many VMs share a place: every strategy against brute force, though no rule asks for them yet.

The constraints are of this test: members, sets of them, and failure domains are drawn, and the oracle walks
all placements that legal migrations reach.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

import pytest

from ovirt_placement.planning.assignment.catalogue import StrategyName, strategy
from ovirt_placement.planning.deadline import NEVER
from ovirt_placement.planning.planner import solve
from ovirt_placement.planning.problem.build_problem import pose
from ovirt_placement.planning.problem.placement import ProblemPlacement, are_legal
from ovirt_placement.planning.problem.problem import HARD, Goal, Move, Problem
from ovirt_placement.rules.constraints import AtMost, Constraint
from ovirt_placement.rules.placement import Placement as Places
from tests.builders import CLUSTER, host, snapshot, vm

#: The host of each VM.
Placement = tuple[str, ...]
#: Violated hard constraints, violated soft ones, migrations.
Worth = tuple[int, int, int]


class Limit(Constraint, frozen=True, kw_only=True):
    """By its definition: no place has VMs of more than `most` sets."""

    family: ClassVar[str] = "test"
    asks: ClassVar[str] = "not too many on a place"
    positive: ClassVar[bool] = False

    most: int
    set_of: Mapping[str, str]
    place_of: Mapping[str, str]

    @property
    def form(self) -> AtMost:
        return AtMost(self.most, self.set_of, self.place_of)

    def offenders(self, placement: Places) -> tuple[str, ...]:
        at = dict(self.running(placement))
        full = self.full(at)
        return tuple(one for one in self.vms if one in at and self.place_of.get(at[one], at[one]) in full)

    def surplus(self, placement: Places) -> int:
        there = self.sets_by_place(dict(self.running(placement)))
        return sum(
            sum(sorted(len(members) for members in sets.values())[: max(0, len(sets) - self.most)])
            for sets in there.values()
        )

    def admits(self, vm: str, host: str, placement: Places) -> bool:
        place = self.place_of.get(host, host)
        there = {
            self.set_of.get(peer, peer)
            for peer in self.vms
            if peer != vm and place in {self.place_of.get(one, one) for one in placement.occupied(peer)}
        }
        return len(there | {self.set_of.get(vm, vm)}) <= self.most

    def full(self, at: Mapping[str, str]) -> set[str]:
        return {place for place, sets in self.sets_by_place(at).items() if len(sets) > self.most}

    def sets_by_place(self, at: Mapping[str, str]) -> dict[str, dict[str, list[str]]]:
        found: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for one in self.vms:
            if one in at:
                place = self.place_of.get(at[one], at[one])
                found[place][self.set_of.get(one, one)].append(one)
        return {place: dict(sets) for place, sets in found.items()}


def drawn(seed: int, hosts: int = 4, vms: int = 5) -> Problem:
    """A few VMs on crowded hosts; each constraint has members, sets and domains of its own."""
    dice = random.Random(seed)
    names = [f"h{number}" for number in range(dice.randint(2, hosts))]
    members = [f"v{number}" for number in range(dice.randint(2, vms))]
    running = [vm(one, dice.choice(names[:2]), memory_mb=dice.choice([500, 1000, 2000])) for one in members]
    rooms = {name: dice.choice([600, 1500, 4000, 20000]) for name in names}
    state = snapshot(*(host(name, free_mb=room) for name, room in rooms.items()), *running)
    return posed(pose(state, CLUSTER), [_limit(dice, members, names) for _ in range(dice.randint(1, 3))])


def posed(problem: Problem, limits: list[Limit]) -> Problem:
    """The problem with these constraints as its goals, all of them wanted."""
    start = ProblemPlacement(problem)
    goals = tuple(
        Goal(
            number,
            limit,
            limit.form,
            HARD if limit.hard else 1,
            wanted=True,
            satisfied=limit.keeps(start),
            surplus=limit.surplus(start),
        )
        for number, limit in enumerate(limits)
    )
    goals_of = {one: tuple(goal for goal in goals if one in goal.vms) for one in problem.where}
    return replace(problem, goals=goals, goals_of=goals_of)


def _limit(dice: random.Random, members: list[str], hosts: list[str]) -> Limit:
    vms = tuple(one for one in members if dice.random() < 0.8) or tuple(members)
    by_sets, by_places = dice.random() < 0.4, dice.random() < 0.4
    return Limit(
        groups=(f"g{dice.random()}",),
        vms=vms,
        hard=dice.random() < 0.6,
        priority=1.0,
        most=1 if by_sets and dice.random() < 0.7 else dice.randint(1, 3),
        set_of={one: dice.choice("ab") for one in vms} if by_sets else {},
        place_of={name: dice.choice("rs") for name in hosts} if by_places else {},
    )


class BruteForce:
    """All placements that legal migrations reach, from the definitions."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._vms = sorted(problem.memory_mb)
        self._limits = [goal.constraint for goal in problem.goals if isinstance(goal.constraint, Limit)]
        assert len(self._limits) == len(problem.goals)

    def best(self) -> Worth:
        start = tuple(self._problem.where[one] for one in self._vms)
        steps = {start: 0}
        waiting = [start]
        for placement in waiting:
            for after in self._after(placement):
                if after not in steps:
                    steps[after] = steps[placement] + 1
                    waiting.append(after)
        return min((*self.violated(placement), count) for placement, count in steps.items())

    def violated(self, placement: Placement) -> tuple[int, int]:
        at = dict(zip(self._vms, placement, strict=True))
        hard = sum(bool(limit.full(at)) for limit in self._limits if limit.hard)
        return hard, sum(bool(limit.full(at)) for limit in self._limits if not limit.hard)

    def _after(self, placement: Placement) -> Iterator[Placement]:
        for number, one in enumerate(self._vms):
            for target in self._problem.hosts:
                after = (*placement[:number], target, *placement[number + 1 :])
                if after != placement and self._legal(one, placement, after):
                    yield after

    def _legal(self, moving: str, before: Placement, after: Placement) -> bool:
        was, now = (dict(zip(self._vms, placement, strict=True)) for placement in (before, after))
        target = now[moving]
        start = self._problem.where
        taken = sum(
            self._problem.memory_mb[one] * ((now[one] == target) - (start[one] == target)) for one in now
        )
        if taken > self._problem.free_mb[target]:
            return False
        for limit in self._limits:
            if not limit.hard:
                continue
            place = limit.place_of.get(target, target)
            if moving in limit.vms and place in limit.full(now):
                return False
            if limit.full(now) and not limit.full(was):
                return False
        return True


def worth(problem: Problem, moves: list[Move]) -> Worth:
    assert are_legal(problem, moves)
    at = dict(problem.where)
    for move in moves:
        at |= dict.fromkeys(move.vms, move.host)
    violated = BruteForce(problem).violated(tuple(at[one] for one in sorted(problem.memory_mb)))
    return (*violated, sum(len(move.vms) for move in moves))


def check(seed: int) -> None:
    problem = drawn(seed)
    best = BruteForce(problem).best()
    for name in StrategyName:
        *_, found = solve(problem, strategy(name), NEVER)
        reached = worth(problem, list(found.moves))
        assert reached >= best, (seed, name)
        assert not found.proven or reached == best, (seed, name)
        if reached[:2] == best[:2]:
            assert found.at_least <= best[2], (seed, name)
        if name is StrategyName.OPTIMAL:
            assert (reached, found.proven) == (best, True), seed


@pytest.mark.parametrize("first", range(0, 200, 25))
def test_no_strategy_says_more_than_is_true_and_the_optimal_one_finds_the_best(first: int) -> None:
    for seed in range(first, first + 25):
        check(seed)


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(200, 2000, 100))
def test_nor_do_they_in_many_more(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed)


@pytest.mark.parametrize("hosts", [2, 6, 50])
@pytest.mark.parametrize("name", StrategyName)
def test_a_crowd_of_three_is_repaired_by_one_migration(hosts: int, name: StrategyName) -> None:
    names = [f"h{number}" for number in range(hosts)]
    state = snapshot(*map(host, names), *(vm(one, "h0") for one in "abc"))
    limit = Limit(groups=("g",), vms=("a", "b", "c"), hard=True, priority=1.0, most=2, set_of={}, place_of={})
    problem = posed(pose(state, CLUSTER), [limit])
    *_, found = solve(problem, strategy(name), NEVER)
    assert worth(problem, list(found.moves)) == (0, 0, 1)
    assert (found.proven, found.at_least) == (True, 1)
