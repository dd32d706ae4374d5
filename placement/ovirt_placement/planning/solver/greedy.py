"""The strategy `greedy`: repairs goal by goal, what matters most first; then tries it with fewer moves."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ovirt_placement.planning.detours import direct_moves
from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.bound import bound, fixed
from ovirt_placement.planning.problem.ends import Strategy, StrategyChoice
from ovirt_placement.planning.problem.problem import Goal, Problem
from ovirt_placement.planning.solver.assignment import Assignment, Cost, EmptiestFirst, best_hosts
from ovirt_placement.planning.solver.proposals import Proposal, Proposals
from ovirt_placement.planning.solver.spread import spread


def detours(assignment: Assignment, mark: int, moves: Mapping[str, str]) -> int:
    """How many of the moves no plain order makes legal, from how things stood at the mark."""
    with assignment.as_at(mark):
        before = {vm: assignment.where(vm) for vm in moves}
        legal = direct_moves(assignment.placement, moves)
        assignment.placement.put(before)
    return len(moves) - sum(len(move.vms) for move in legal)


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried for one goal."""

    #: Hosts for each VM.
    width: int
    #: How often what was violated is repaired in turn.
    depth: int
    #: Sets of moves in all.
    tries: int


class Repairing:
    """The search for the cheapest way to repair one goal. The draft is left as it was found."""

    def __init__(
        self,
        assignment: Assignment,
        order: EmptiestFirst,
        goal: Goal,
        effort: Effort,
        deadline: Deadline,
    ) -> None:
        self._assignment = assignment
        self._goal = goal
        self._deadline = deadline
        self._effort = effort
        self._settled: set[str] = set()
        self._proposals = Proposals(assignment, order, effort.width, self._settled)
        self._tries = effort.tries
        self._mark = assignment.mark
        self._violated = {one.number for one in assignment.placement.violated_goals()}
        self._headroom_deficit = dict(assignment.crowded)
        self._best: Cost = assignment.cost
        self._ideal = _without(self._best, goal)
        self._found: dict[str, str] = {}

    def cheapest(self) -> Mapping[str, str]:
        """VMs that go elsewhere, with their hosts; none where nothing better than the draft was found."""
        self._go_on(self._effort.depth)
        return self._found

    def _go_on(self, depth: int) -> None:
        """Repair the first trouble that there is, in every way, and then what is left of it."""
        may_stay, proposals = self._trouble()
        if may_stay:
            self._judge()
        for proposal in proposals if depth > 0 else ():
            if self._tries <= 0 or self._deadline.over:
                return
            self._try_proposal(proposal, depth)

    def _try_proposal(self, proposal: Proposal, depth: int) -> None:
        self._tries -= 1
        mark = self._assignment.mark
        for vm, host in proposal.items():
            self._assignment.move((vm,), host)
        self._settled.update(proposal)
        if self._worth_it():
            self._go_on(depth - 1)
        self._settled.difference_update(proposal)
        self._assignment.back_to(mark)

    def _worth_it(self) -> bool:
        """Whether it may still be cheaper than the best, if that repaired the goal and broke nothing."""
        return self._best[:-2] > self._ideal[:-2] or self._assignment.cost[-2] < self._best[-2]

    def _trouble(self) -> tuple[bool, Iterator[Proposal]]:
        """What to repair next: the goal, hosts that are overfull, then what was newly violated.

        Whether the draft is an end even if that stays, and proposals to repair it.
        """
        assignment, proposals = self._assignment, self._proposals
        if assignment.placement.violated(self._goal):
            return False, proposals.repairing(self._goal)
        for host, missing_mb in assignment.overfull.items():
            return False, proposals.making_room(host, missing_mb)
        for goal in assignment.lost.values():
            return False, proposals.repairing(goal)
        for goal in self._newly_violated():
            return True, proposals.repairing(goal)
        for host, now in assignment.crowded.items():
            before = self._headroom_deficit.get(host, (0, 0))
            if now > before:
                return True, proposals.making_room(host, now[0] - before[0], before)
        return True, iter(())

    def _newly_violated(self) -> Iterator[Goal]:
        """Goals that count and that were not violated before, the most important first."""
        goals = {
            goal.number: goal
            for vm in self._assignment.moves_since(self._mark)
            for goal in self._assignment.problem.goals_of.get(vm, ())
            if self._assignment.placement.violated(goal)
            and goal.number not in self._violated
            and (goal.wanted or goal.satisfied)
        }
        return iter(sorted(goals.values(), key=lambda goal: goal.level))

    def _judge(self) -> None:
        """Keep what is done so far, if nothing found is cheaper."""
        cost = self._assignment.cost
        if cost >= self._best or self._assignment.lost or self._assignment.overfull:
            return
        moves = self._assignment.moves_since(self._mark)
        cost = _with_detours(cost, detours(self._assignment, self._mark, moves))
        if cost < self._best:
            self._best, self._found = cost, moves


def _without(cost: Cost, goal: Goal) -> Cost:
    """The same with the goal repaired for nothing."""
    place = 2 if goal.hard else 4 + goal.level
    return (*cost[:place], cost[place] - 1, *cost[place + 1 :])


def _with_detours(cost: Cost, moves: int) -> Cost:
    """Moves that are not legal as things stand count double: they need others, or wait for them."""
    *ahead, migrations, memory_mb = cost
    return (*ahead, migrations + moves, memory_mb)


#: Hosts that each VM is offered, and VMs in a row that find none before the group is left as it is.
_WIDTH = 3
_MOST_IN_VAIN = 20


def part(assignment: Assignment, order: EmptiestFirst, goal: Goal, deadline: Deadline) -> None:
    """One VM after another goes, as long as that counts and costs nothing that matters more."""
    while goal.partly and assignment.placement.violated(goal) and not deadline.over:
        if not any(_leaves(assignment, order, goal, vm) for vm in _leaving(assignment, goal)[:_MOST_IN_VAIN]):
            break


def _leaving(assignment: Assignment, goal: Goal) -> list[str]:
    """Those that stand wrong and may go: what counts most in a sum, or from the largest crowd, first."""
    problem, crowd = assignment.problem, assignment.placement.crowd(goal)

    def rank(vm: str) -> tuple[int, int, int, str]:
        amount = 0 if goal.sum is None else goal.sum.amounts[vm]
        return -amount, -crowd[assignment.where(vm)], problem.memory_mb[vm], vm

    return sorted(
        (vm for vm in goal.constraint.offenders(assignment.placement) if problem.targets[vm]), key=rank
    )


def _leaves(assignment: Assignment, order: EmptiestFirst, goal: Goal, vm: str) -> bool:
    block, cost, mark = assignment.block(vm), assignment.cost, assignment.mark
    if goal.by_pairs and len(set(block).intersection(goal.vms)) > 1:
        return False
    closed: Collection[str] = () if goal.sum is None else goal.sum.hosts
    if goal.by_pairs:
        closed = assignment.placement.crowd(goal)
    for host in best_hosts(assignment, order, block, _WIDTH, but=closed):
        source = assignment.where(vm)
        assignment.move(block, host)
        if assignment.cost < cost:
            order.update((source, host))
            return True
        assignment.back_to(mark)
    return False


#: What is tried for every goal, and then for those that this does not repair.
_QUICK = Effort(width=2, depth=2, tries=12)
_PATIENT = Effort(width=4, depth=4, tries=150)


class Greedy(Strategy):
    """The same problem has the same choice, unless the deadline cuts it short."""

    name = "greedy"

    def choose(
        self, problem: Problem, deadline: Deadline, known: StrategyChoice | None = None
    ) -> StrategyChoice:
        assignment = Assignment(problem)
        order = EmptiestFirst(assignment)
        for effort in (_QUICK, _PATIENT):
            for goal in by_importance(assignment.placement.violated_goals()):
                if not deadline.over:
                    repair(assignment, order, goal, effort, deadline)
        for goal in assignment.placement.violated_goals():
            if not deadline.over:
                part(assignment, order, goal, deadline)
        return StrategyChoice(spread(problem, assignment.placement.moved, deadline), bound(problem))


def repair(
    assignment: Assignment, order: EmptiestFirst, goal: Goal, effort: Effort, deadline: Deadline
) -> None:
    """Take the cheapest way to repair a goal, if it is still violated and that makes things better."""
    if not goal.wanted or not assignment.placement.violated(goal) or fixed(assignment.problem, goal):
        return
    moves = Repairing(assignment, order, goal, effort, deadline).cheapest()
    left = {assignment.where(vm) for vm in moves}
    for vm, host in moves.items():
        assignment.move((vm,), host)
    order.update(left.union(moves.values()))


def by_importance(goals: Iterable[Goal]) -> list[Goal]:
    """Wanted goals: the more important level first, then those with fewer VMs."""
    return sorted((goal for goal in goals if goal.wanted), key=lambda goal: (goal.level, len(goal.vms)))
