"""What no plan can beat: violations that must stay, migrations that any plan needs, and the best of few."""

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import accumulate
from itertools import count as numbers
from math import prod
from typing import Any, Generic, TypeVar

from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.counts import Count, count
from ovirt_placement.planning.problem.ends import CandidateHosts, Value, score
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Goal, Move, Problem
from ovirt_placement.rules.elements.rule import Allowed, AtLeast, AtMost, Even, Sum

#: Shares are added as floats: with less than this missing, nothing is.
_ROUNDING = 1e-6


def bound(problem: Problem, among: Iterable[Goal] | None = None) -> Value:
    """What no end is better than; seldom what can be reached.

    Of some goals, if they are given, and of the VMs of these alone.
    """
    goals = problem.goals if among is None else among
    violated = [goal for goal in goals if goal.wanted and not goal.satisfied]
    lost = {goal: least_excess(problem, goal) for goal in violated if fixed(problem, goal)}
    hard, *soft = (sum(goal.level == level for goal in lost) for level in range(problem.levels))
    costs = costs_of(problem, [goal for goal in violated if goal not in lost])
    costs |= {goal: cost for goal, least in lost.items() if (cost := _cost_in_part(problem, goal, least))}
    migrations = sum(costs[goal] for goal in independent(problem, costs))
    return (hard, 0, *soft, sum(lost.values()), migrations)


def costs_of(problem: Problem, violated: Sequence[Goal]) -> dict[Goal, int]:
    """The migrations that each of some goals takes at least where all of them are repaired.

    Sums about the same VMs on the same hosts are repaired by the same ones: enough must leave for each.
    """
    start, sums = ProblemPlacement(problem), defaultdict[object, list[tuple[Sum, int]]](list)
    for goal in violated:
        if goal.sum is not None:
            sums[goal.sum.hosts, goal.vms].append((goal.sum, start.faults(goal)))
    return {
        goal: goal.surplus if goal.sum is None else _leaving(problem, goal, sums[goal.sum.hosts, goal.vms])
        for goal in violated
    }


def _leaving(problem: Problem, goal: Goal, sums: Sequence[tuple[Sum, int]]) -> int:
    """How few VMs of a goal make up the excess of these sums, by the shares of all that the largest have."""
    if len(sums) < 2:
        return goal.surplus
    there = _present(problem, goal)
    shares = (sum(min(1.0, total.amounts[vm] / excess) for total, excess in sums) for vm in there)
    made_up = list(accumulate(sorted(shares, reverse=True)))
    few = sum(enough < len(sums) - _ROUNDING for enough in made_up)
    return max(goal.surplus, min(few + 1, len(made_up)))


def least_excess(problem: Problem, goal: Goal) -> int:
    """How much of a goal is violated in every end, if that counts, as far as it is seen in it alone."""
    if not goal.partly or isinstance(goal.form, Even | AtLeast):
        return 0
    if goal.allowed is not None:
        return sum(_stays_violated(problem, goal, vm) for vm in goal.vms)
    staying = _staying(problem, goal)
    least = 0 if staying is None else goal.excess(staying)
    if goal.limit is not None and not goal.limit.set_of and not goal.by_pairs:
        least = max(least, len(goal.vms) - goal.limit.most * len(_places(problem, goal, goal.limit)))
    return least


def _cost_in_part(problem: Problem, goal: Goal, least: int) -> int:
    """How many VMs must move at least for a goal to be violated no more than it must be."""
    count = problem.start_count(goal)
    if not goal.partly or goal.by_pairs or count is None:
        return 0
    if goal.sum is None:
        return max(0, count.faults - least)  # each counts 1 at most
    able = (vm for vm in _present(problem, goal) if problem.targets[vm] - {problem.where[vm]})
    return sum(goal.sum.amounts[vm] > 0 for vm in able)  # those that stay are too much alone


def independent(problem: Problem, costs: Mapping[Goal, int]) -> list[Goal]:
    """Goals of which none can be repaired by moving the VMs of another, so that their costs add up.

    What matters more comes first, then what costs more. A sum, for one, is repaired by VMs on its own hosts
    alone.
    """
    start, taken, found = ProblemPlacement(problem), set[str](), list[Goal]()
    for goal in sorted(costs, key=lambda goal: (goal.level, -costs[goal], goal.number)):
        if goal.form is None:
            continue
        local = goal.limit is not None or goal.allowed is not None or goal.sum is not None
        moving = goal.constraint.offenders(start) if local else goal.vms
        if taken.isdisjoint(moving):
            taken.update(moving)
            found.append(goal)
    return found


def leavers(problem: Problem, violated: Iterable[Goal]) -> list[tuple[list[str], int]]:
    """Where no more migrations are made than independent goals cost: VMs, and how many of them move.

    No other VM moves then, and none stays that a goal cannot do without. With one that leaves a sum, the
    largest of the others must bring it below its limit, and every other sum on the same hosts.
    """
    violated, start = list(violated), ProblemPlacement(problem)
    costs, found = costs_of(problem, violated), []
    for goal in independent(problem, costs):
        vms = [vm for vm in goal.constraint.offenders(start) if problem.targets[vm]]
        if goal.gathers:
            vms = [vm for vm in goal.vms if problem.targets[vm]]
        for other in violated:
            if goal.sum is None or other.sum is None or other.sum.hosts != goal.sum.hosts:
                continue
            # Where it has VMs of its own, these may leave for it.
            if set(other.constraint.offenders(start)) <= set(goal.constraint.offenders(start)):
                brought = {vm: other.sum.amounts.get(vm, 0) for vm in vms}
                vms = _large_enough(vms, brought, start.faults(other), costs[goal])
        found.append((vms, costs[goal]))
    return found


def _large_enough(vms: Iterable[str], amounts: Mapping[str, int], excess: int, number: int) -> list[str]:
    """Those of which a set with this number of VMs makes up an excess."""
    largest = sorted(vms, key=lambda vm: -amounts[vm])
    others = sum(amounts[vm] for vm in largest[: number - 1])
    least = amounts[largest[number - 1]] if number <= len(largest) else 0
    return [vm for vm in largest if others + min(least, amounts[vm]) >= excess]


def fixed(problem: Problem, goal: Goal) -> bool:
    """Whether VMs that cannot move to where it wants them, or too few hosts, break it in every end."""
    if goal.number not in problem.known_fixed:
        staying = None if isinstance(goal.form, Even | AtLeast | Allowed) else _staying(problem, goal)
        problem.known_fixed[goal.number] = (
            (staying is not None and staying.faults > 0)
            or (goal.allowed is not None and any(_stays_violated(problem, goal, vm) for vm in goal.vms))
            or _too_many(problem, goal)
        )
    return problem.known_fixed[goal.number]


def _stays_violated(problem: Problem, goal: Goal, vm: str) -> bool:
    return not goal.allows(problem.where[vm]) and not any(map(goal.allows, problem.targets[vm]))


def _staying(problem: Problem, goal: Goal) -> Count | None:
    """Those of its VMs that cannot move."""
    where, targets = problem.where, problem.targets
    return count(
        goal.form, [(vm, where[vm]) for vm in _present(problem, goal) if not targets[vm] - {where[vm]}]
    )


def _present(problem: Problem, goal: Goal) -> Iterable[str]:
    """Its VMs; of a sum, which may be about all VMs of the cluster, those on its hosts."""
    if goal.sum is None:
        return goal.vms
    return [vm for host in goal.sum.hosts for vm in problem.on.get(host, ()) if problem.in_goal(vm, goal)]


def _too_many(problem: Problem, goal: Goal) -> bool:
    """Whether it has more VMs than all places together may have."""
    limit = goal.limit
    if limit is None:
        return False
    return limit.places_needed(goal.vms) > len(_places(problem, goal, limit))


def _places(problem: Problem, goal: Goal, limit: AtMost) -> set[str]:
    """Where its VMs may be; most of them share one set of targets, so that each set is looked at once."""
    hosts = {problem.where[vm] for vm in goal.vms}.union(*{problem.targets[vm] for vm in goal.vms})
    return {limit.place(host) for host in hosts}


def least_migrations(problem: Problem, worth: Value, bound: Value | None) -> int:
    """Migrations that every legal sequence has whose end is as good as one of this worth, or better.

    `bound` is what no end is better than; None where it is not known which hosts every VM may come to. A
    better end may repair more, and then leave violated what matters less: each way to be as good is looked
    at. Of goals that are independent, all but as many as may remain violated cost what each costs by itself.
    """
    violated = [goal for goal in problem.goals if goal.wanted and not goal.satisfied]
    lost = {goal for goal in violated if bound is not None and fixed(problem, goal)}
    chosen = independent(problem, {goal: goal.surplus for goal in violated if goal not in lost})
    levels = range(problem.levels)
    costs = [sorted(goal.surplus for goal in chosen if goal.level == level) for level in levels]
    hopeless = [sum(goal.level == level for goal in lost) for level in levels]
    least = min(_least(costs, hopeless, limits) for limits in _limits(problem.levels, worth, bound))
    return max(least, bound[-1]) if bound is not None and worth[:-1] <= bound[:-1] else least


def _limits(levels: int, worth: Value, bound: Value | None) -> Iterator[list[float]]:
    """How many goals of each level may remain violated: in ends as good, and in those better in a field."""
    places = [0, *range(2, levels + 1)]
    for better in range(len(worth) - 1):
        known = bound is not None and worth[:better] == bound[:better]
        if worth[better] > (bound[better] if bound is not None and known else 0):
            yield [worth[place] - (place == better) if place <= better else math.inf for place in places]
    yield [worth[place] for place in places]


def _least(costs: Sequence[Sequence[int]], hopeless: Sequence[int], limits: Sequence[float]) -> int:
    return sum(
        sum(of_level[: max(0, len(of_level) - int(max(0, limit - lost)))])
        for of_level, lost, limit in zip(costs, hopeless, limits, strict=True)
        if limit < math.inf
    )


State = TypeVar("State", bound=Hashable)
Edge = TypeVar("Edge")
#: Numbers of which the first that differ decide.
Cost = tuple[int, ...]
Rank = tuple[Any, ...]


class BestFirst(Generic[State, Edge]):
    """States that were reached. With ranks that no way beats (A*) the first that is an end is a cheapest one.

    What is an end, which edges lead on from a state and when the search is given up is the caller's matter.
    """

    def __init__(self, start: State, rank: Rank = (), cost: Cost = (0,)) -> None:
        self._cost = {start: cost}
        self._before: dict[State, tuple[State, Edge]] = {}
        self._serial = numbers()
        self._open: list[tuple[Rank, int, Cost, State]] = [(rank, next(self._serial), cost, start)]
        #: How many states were looked at.
        self.seen = 0
        #: Of the state that was taken last.
        self.rank = rank

    def pop_next(self) -> State | None:
        """The state with the least rank that is still to be looked at, if any is."""
        while self._open:
            self.rank, _, cost, state = heappop(self._open)
            if cost == self._cost[state]:
                self.seen += 1
                return state
        return None

    @property
    def exhausted(self) -> bool:
        """Whether no state is left."""
        return not self._open

    def cost(self, state: State) -> Cost:
        """What the cheapest way that is known to a state costs."""
        return self._cost[state]

    def cheaper(self, state: State, cost: Cost) -> bool:
        """Whether no way to a state is known that costs as little."""
        known = self._cost.get(state)
        return known is None or cost < known

    def add(self, before: State, edge: Edge, state: State, cost: Cost, rank: Rank) -> None:
        """A state can be reached from another, by an edge that makes it cheaper than is known."""
        self._cost[state] = cost
        self._before[state] = before, edge
        heappush(self._open, (rank, next(self._serial), cost, state))

    def steps_to(self, state: State) -> list[Edge]:
        """From the start to a state."""
        found = []
        while state in self._before:
            state, edge = self._before[state]
            found.append(edge)
        return found[::-1]


#: VMs that are elsewhere than at the start, with their hosts.
Places = frozenset[tuple[str, str]]


def put_at(placement: ProblemPlacement, places: Places) -> None:
    """Bring a placement there, from wherever it is."""
    placement.put({vm: placement.problem.where[vm] for vm in placement.moved} | dict(places))


def places_after(problem: Problem, places: Places, move: Move) -> Places:
    """Where VMs are once a move is made, too."""
    others = {place for place in places if place[0] not in move.vms}
    return frozenset(others.union((vm, move.host) for vm in move.vms if problem.where[vm] != move.host))


def closures(placement: ProblemPlacement, vms: Iterable[str]) -> list[tuple[str, ...]]:
    """What of these VMs can only move at once, or may, each closure once."""
    found = dict.fromkeys(placement.closure(vm) for vm in vms)
    return [closure for closure in found if len(closure) > 1]


def legal_moves(placement: ProblemPlacement, vms: Collection[str], hosts: Collection[str]) -> list[Move]:
    """All legal moves of VMs to hosts: of each alone, and of what may move at once."""
    groups = [*((vm,) for vm in vms), *closures(placement, vms)]
    return [move for group in groups for host in hosts if placement.allows(move := Move(group, host))]


#: A problem with more placements is not begun with; and placements that are looked at, a millisecond each.
_MOST_PLACEMENTS = 100_000
_MOST_SEEN = 5_000


def shortest(problem: Problem, bound: Sequence[int], deadline: Deadline) -> tuple[Move, ...] | None:
    """The fewest migrations to the best that any legal sequence reaches; None if that is too much to know.

    `bound` is what no end can beat: hard, crowding, soft by level. Reaching it ends the search. Of ends that
    are as good the one with the least memory that moves counts, then that with the emptiest fullest target.
    """
    candidates = CandidateHosts(problem, other=True)
    vms = sorted(vm for vm in problem.memory_mb if len(candidates.hosts_of(vm)) > 1)
    if prod(len(candidates.hosts_of(vm)) for vm in vms) > _MOST_PLACEMENTS:
        return None
    placement = ProblemPlacement(problem)
    search: BestFirst[Places, Move] = BestFirst(frozenset())
    best = None
    while (state := search.pop_next()) is not None:
        (migrations,) = search.cost(state)
        if best is not None and best[0] <= tuple(bound) and migrations > best[1]:
            break
        if search.seen > _MOST_SEEN or deadline.over:
            return None
        put_at(placement, state)
        ended = score(placement)
        tried = ended.value[:-1], migrations, ended.memory_mb, ended.fullest, search.seen, state
        best = tried if best is None else min(best, tried)
        for move in legal_moves(placement, vms, problem.hosts):
            after, cost = places_after(problem, state, move), (migrations + len(move.vms),)
            if search.cheaper(after, cost):
                search.add(state, move, after, cost, cost)
    return None if best is None else tuple(search.steps_to(best[-1]))
