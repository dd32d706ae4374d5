"""The first end: one part after another takes the best that the room left by those before it allows."""

from __future__ import annotations

from dataclasses import dataclass

from ovirt_placement.planning.choosing.greedy.strategy import mended
from ovirt_placement.planning.choosing.optimal.domains import reduced, roomiest
from ovirt_placement.planning.choosing.optimal.ends import (
    Value,
    counted,
    length_of_value,
    put,
    solve,
    total,
    value_of,
)
from ovirt_placement.planning.choosing.optimal.parts import Part, least_migrations, offenders, parts_of
from ovirt_placement.planning.choosing.optimal.simple import gathered
from ovirt_placement.planning.choosing.optimal.stages import Solved
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.problem.reach import Reach
from ovirt_placement.planning.problem.standing import Standing

#: A part with more places than this to choose from is mended by its offenders alone.
_MOST_PLACES = 6_000
#: And with more places even so, it is mended by the greedy strategy.
_MOST_OFFERED = 30_000
#: No part takes more than this share of the time that is left.
_PART_SHARE = 0.25


@dataclass
class Built:
    """A part with the value of its end, and what it could reach at best if there were room everywhere."""

    part: Part
    value: Value
    bound: Value

    @property
    def perfect(self) -> bool:
        return self.value <= self.bound


class Construction:
    """An end that grows part by part."""

    def __init__(self, problem: Problem, reach: Reach) -> None:
        self.problem = problem
        self.reach = reach
        self.standing = Standing(problem)
        self.built: list[Built] = []
        #: Of each VM of a part all VMs of the part.
        self.part_of: dict[str, tuple[str, ...]] = {}
        self._start = Standing(problem)
        self.untouched = self._untouchable()

    def run(self, deadline: Deadline) -> None:
        for part in parts_of(self.problem, self.reach):
            self.built.append(self._build(part, deadline.within(_PART_SHARE)))
            self.part_of |= dict.fromkeys(part.vms, part.vms)
        parted = {goal.number for built in self.built for goal in built.part.goals}
        self.untouched = self._untouchable(parted)

    @property
    def bound(self) -> Value:
        """No end is better than this."""
        return total([self.untouched, *(built.bound for built in self.built)], self.problem)

    def value_of(self, part: Part) -> Value:
        """What a part is worth as things stand, but for what it takes of headroom."""
        sought = (goal for goal in part.goals if goal.wanted or goal.held)
        counts = counted(filter(self.standing.broken, sought), self.standing)
        counts[-1] = sum(vm in self.standing.moved for vm in part.vms)
        return tuple(counts)

    def _untouchable(self, parted: frozenset[int] | set[int] = frozenset()) -> Value:
        """What is broken where nobody can move, as far as a model can tell."""
        broken = (
            goal
            for goal in self._start.broken_goals()
            if goal.wanted and goal.form is not None and goal.number not in parted
        )
        return tuple(counted(broken, self._start))

    def _build(self, part: Part, deadline: Deadline) -> Built:
        simple = gathered(part, self.standing, self.reach)
        if simple is not None:
            put(self.standing, simple)
            best = (*(0 for _ in range(length_of_value(self.problem) - 1)), len(simple))
            return Built(part, best, best)
        hosts = roomiest(self.standing)
        domains = reduced(self.standing, self.reach, part.vms, hosts)
        narrow = sum(map(len, domains.values())) > _MOST_PLACES
        if narrow:
            domains = reduced(self.standing, self.reach, offenders(part, self.problem), hosts)
            simple = gathered(part, self.standing, self.reach, headroom=False)
            if simple is None and sum(map(len, domains.values())) > _MOST_OFFERED:
                simple = mended(self.standing, part.broken)
        solved = None if simple else solve(self.standing, self.reach, domains, deadline)
        if solved is not None or simple is not None:
            put(self.standing, solved.where if solved is not None else simple or {})
        value = self._value(part, solved)
        perfect = (*(0 for _ in value[:-1]), least_migrations(part.broken, self._start))
        if value <= perfect or narrow:
            return Built(part, value, perfect)
        return Built(part, value, max(perfect, self._bound(part, deadline)))

    def _bound(self, part: Part, deadline: Deadline) -> Value:
        """What the part could reach if there were room for it everywhere."""
        domains = reduced(self._start, self.reach, part.vms, self.problem.hosts)
        solved = solve(self._start, self.reach, domains, deadline, room=False, evenly=False)
        return () if solved is None else solved.bounds[: length_of_value(self.problem)]

    def _value(self, part: Part, solved: Solved | None) -> Value:
        value = self.value_of(part)
        if solved is None:
            return value
        # With headroom and detours, as the model counts them.
        return (value[0], solved.values[1], *value[2:-1], value_of(solved, self.problem)[-1])
