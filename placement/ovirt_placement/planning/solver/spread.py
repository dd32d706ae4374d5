"""Spreads VMs that have to move over hosts that are equally good for them: evenly, and none too full."""

from collections.abc import Mapping

from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.solver.assignment import Assignment, EmptiestFirst, HostPenalties, allowed

#: So often every VM is looked at; it ends as soon as none finds a better host.
_MOST_ROUNDS = 4
#: How often a host may rise by the fair share, where another would do.
_MOST_SHARES = 2

Block = tuple[str, ...]


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
        for host, fill in self._order.with_fill():
            if not best_key[0] and fill >= best_key[1]:
                break
            if (
                host in hosts
                and penalties.against(host) <= least
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
