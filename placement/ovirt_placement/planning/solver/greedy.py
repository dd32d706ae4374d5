"""The strategy `greedy`: repairs goal by goal, what matters most first; then spreads what moves."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.problem.bound import bound, fixed
from ovirt_placement.planning.problem.ends import Strategy, StrategyChoice
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Goal, Move, Problem
from ovirt_placement.planning.sequence import direct_moves
from ovirt_placement.planning.solver.assignment import (
    Assignment,
    Cost,
    EmptiestFirst,
    HostPenalties,
    allowed,
    best_hosts,
)
from ovirt_placement.planning.solver.proposals import Block, Proposal, Proposals


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried for one goal."""

    #: Hosts for each VM.
    width: int
    #: How often what was violated is repaired in turn.
    depth: int
    #: Sets of moves in all.
    tries: int
    #: Whether what is moved must be able to go there as things stand.
    directly: bool = False


class Repairing:
    """The search for the cheapest way to repair one goal. The draft is left as it was found."""

    def __init__(
        self, assignment: Assignment, order: EmptiestFirst, goal: Goal, effort: Effort, deadline: Deadline
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
        detours = self._detours(moves)
        *ahead, migrations, memory_mb = cost
        # Moves that are not legal as things stand count double: they need others, or wait for them.
        cost = (*ahead, migrations + detours, memory_mb)
        if cost < self._best and not (detours and self._effort.directly):
            self._best, self._found = cost, moves

    def _detours(self, moves: Mapping[str, str]) -> int:
        """How many of the moves no plain order makes legal, from how things stood at first."""
        assignment = self._assignment
        with assignment.as_at(self._mark):
            before = {vm: assignment.where(vm) for vm in moves}
            legal = direct_moves(assignment.placement, moves)
            assignment.placement.put(before)
        return len(moves) - sum(len(move.vms) for move in legal)


def _without(cost: Cost, goal: Goal) -> Cost:
    """The same with the goal repaired for nothing."""
    place = 2 if goal.hard else 4 + goal.level
    return (*cost[:place], cost[place] - 1, *cost[place + 1 :])


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


#: So often every VM is looked at; it ends as soon as none finds a better host.
_MOST_ROUNDS = 4
#: How many hosts each is offered, the emptiest first.
_MOST_HOSTS = 60
#: How often a host may rise by the fair share, where another would do.
_MOST_SHARES = 2


def spread(problem: Problem, where: Mapping[str, str], deadline: Deadline = NEVER) -> dict[str, str]:
    """The same VMs on hosts that are as good by every goal, and more even: no earlier objective gets worse.

    `where` has the VMs of an end that move, with their hosts. What was placed so far counts. A host rises by
    no more than twice the fair share, where another would do; of those left, the emptiest takes the VM.
    """
    assignment = Assignment(problem)
    for vm, host in where.items():
        assignment.move((vm,), host)
    spreading = _Spreading(assignment)
    for _ in range(_MOST_ROUNDS):
        if not sum([not deadline.over and spreading.better(block) for block in spreading.blocks()]):
            break
    return dict(assignment.placement.moved)


class _Spreading:
    """Moves blocks on, one by one, in a draft."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._order = EmptiestFirst(assignment)
        problem, vms = assignment.problem, assignment.placement.moved
        hosts = len(frozenset[str]().union(*{problem.targets[vm] for vm in vms})) or 1
        #: What each host would rise by, were all that moves spread evenly; at least by one VM.
        self._share_mb, self._share_cpu = (
            max(sum(needs) / hosts, *needs, 1.0)
            for needs in ([problem.memory_mb[vm] for vm in vms], [problem.cpu[vm] for vm in vms])
        )

    def blocks(self) -> list[Block]:
        """VMs that move and must stay together, the largest first; each is once."""
        found: list[Block] = []
        seen: set[str] = set()
        for vm in self._assignment.placement.moved:
            if vm not in seen:
                found.append(self._block(vm))
                seen.update(found[-1])
        return sorted(found, key=lambda block: (-self._assignment.size_mb(block), block))

    def better(self, block: Block) -> bool:
        """Move a block to a better host; whether there was one."""
        assignment = self._assignment
        here = assignment.where(block[0])
        if any(assignment.where(vm) != here for vm in block):
            return False
        if not all(vm in assignment.placement.moved for vm in block):
            return False  # one of them would move that has not
        host = self._best(block, here)
        if host == here:
            return False
        cost, mark = assignment.cost, assignment.mark
        assignment.move(block, host)
        if assignment.cost > cost:
            assignment.back_to(mark)
            return False
        self._order.update((here, host))
        return True

    def _best(self, block: Block, here: str) -> str:
        assignment = self._assignment
        memory_mb, cpu = assignment.size_mb(block), assignment.cpu(block)
        penalties = HostPenalties(assignment, block)
        least, headroom_deficit = penalties.against(here), assignment.headroom_deficit_of(here)
        waits = not self._at_once(block, here, memory_mb)
        hosts = allowed(assignment, block) - {here, *(assignment.problem.where[vm] for vm in block)}
        best, best_key = here, self._key(here, 0, 0.0)
        able = ((host, fill) for host, fill in self._order.with_fill() if host in hosts)
        for host, fill in islice(able, _MOST_HOSTS):
            if not best_key[0] and fill >= best_key[1]:
                break
            if (
                penalties.against(host) <= least
                and assignment.placement.free_mb(host) >= memory_mb
                and (key := self._key(host, memory_mb, cpu)) < best_key
                and assignment.headroom_deficit_with(host, memory_mb, cpu) <= headroom_deficit
                and (waits or self._at_once(block, host, memory_mb))
            ):
                best, best_key = host, key
        return best

    def _key(self, host: str, memory_mb: int, cpu: float) -> tuple[float, int]:
        """How far it would rise above what is fair, in shares, and how full it would be."""
        more_mb, more_cpu = self._assignment.rise(host)
        over_mb = (more_mb + memory_mb) / self._share_mb - _MOST_SHARES
        over_cpu = (more_cpu + cpu) / self._share_cpu - _MOST_SHARES
        return max(0.0, round(over_mb, 6), round(over_cpu, 6)), self._assignment.fill(host, memory_mb, cpu)

    def _at_once(self, block: Block, host: str, memory_mb: int) -> bool:
        """Whether the block can go there without waiting for another to leave."""
        assignment, problem = self._assignment, self._assignment.problem
        others = [vm for vm in assignment.arrived(host) if vm not in block]
        if problem.free_mb[host] < assignment.size_mb(others) + memory_mb:
            return False
        leaving = frozenset(assignment.left(host))
        return not leaving or not any(
            peer in leaving
            for vm in block
            for goal in problem.goals_of.get(vm, ())
            if goal.hard
            for peer in goal.rivals({vm})
        )

    def _block(self, vm: str) -> Block:
        """The VM with those that can be satisfied together with it on its host, whichever rule wants it."""
        placement, goals = self._assignment.placement, self._assignment.problem.goals_of
        found, waiting, read = {vm}, [vm], set[int]()
        while waiting:
            for goal in goals.get(waiting.pop(), ()):
                counts = goal.gathers and (goal.wanted or goal.satisfied) and not placement.violated(goal)
                if counts and goal.number not in read:
                    read.add(goal.number)
                    waiting += set(goal.vms) - found
                    found.update(goal.vms)
        return tuple(sorted(found))


#: What is tried for every goal, and then for those that this does not repair.
_QUICK = Effort(width=2, depth=2, tries=12)
_PATIENT = Effort(width=4, depth=4, tries=150)
#: About how many ends are remembered on the way.
_EARLIER = 8


class Greedy(Strategy):
    """The same problem has the same choice, unless the deadline cuts it short."""

    name = "greedy"

    def choose(
        self, problem: Problem, deadline: Deadline, known: StrategyChoice | None = None
    ) -> StrategyChoice:
        assignment = Assignment(problem)
        marks = [assignment.mark for _ in filter(None, _repairs(assignment, deadline, directly=False))]
        marks = marks[:: -max(1, len(marks) // _EARLIER)]
        earlier = tuple(assignment.moves_since(0, until=mark) for mark in marks)
        where = spread(problem, assignment.placement.moved, deadline)
        return StrategyChoice(where, bound(problem), earlier)

    def repair_directly(self, problem: Problem, deadline: Deadline) -> tuple[Move, ...]:
        """Each repair is legal once those before it are made: more time only adds to them."""
        assignment, there = Assignment(problem), ProblemPlacement(problem)
        moves: list[Move] = []
        for moved in _repairs(assignment, deadline, directly=True):
            moves += direct_moves(there, moved)
            if any(there.where(vm) != host for vm, host in moved.items()):
                break
        return tuple(moves)


def _repairs(assignment: Assignment, deadline: Deadline, *, directly: bool) -> Iterator[Mapping[str, str]]:
    """Repair goal by goal, in a draft; each time the VMs that went elsewhere, with their hosts."""
    order = EmptiestFirst(assignment)
    for effort in (_QUICK, _PATIENT):
        effort = replace(effort, directly=directly)
        # The more important level first, then those with fewer VMs.
        violated = assignment.placement.violated_goals()
        for goal in sorted(violated, key=lambda goal: (goal.level, len(goal.vms))):
            if not deadline.over:
                yield repair(assignment, order, goal, effort, deadline)
    for goal in assignment.placement.violated_goals():
        if not deadline.over:
            mark = assignment.mark
            part(assignment, order, goal, deadline)
            yield assignment.moves_since(mark)


def repair(
    assignment: Assignment, order: EmptiestFirst, goal: Goal, effort: Effort, deadline: Deadline
) -> Mapping[str, str]:
    """Take the cheapest way to repair a goal, if it is still violated and that makes things better."""
    if not goal.wanted or not assignment.placement.violated(goal) or fixed(assignment.problem, goal):
        return {}
    moves = Repairing(assignment, order, goal, effort, deadline).cheapest()
    left = {assignment.where(vm) for vm in moves}
    for vm, host in moves.items():
        assignment.move((vm,), host)
    order.update(left.union(moves.values()))
    return moves
