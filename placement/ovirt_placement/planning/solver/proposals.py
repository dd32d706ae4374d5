"""Proposals to repair one goal or to lighten a host: each a set of moves, the most promising first."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from ovirt_placement.planning.problem.ends import company
from ovirt_placement.planning.problem.problem import Goal
from ovirt_placement.planning.solver.assignment import Assignment, EmptiestFirst, allowed, best_hosts
from ovirt_placement.rules.elements.rule import Allowed, AtMost, OnePlace, Sum

#: VMs that end elsewhere, with their hosts.
Proposal = Mapping[str, str]
#: VMs that move together.
Block = tuple[str, ...]

#: This many VMs of a host are tried for a single one whose going makes room.
_MOST_SINGLES = 6


@dataclass(frozen=True)
class Proposals:
    """Proposals for a draft as it stands when asked. `width` is how many hosts are tried for a VM."""

    assignment: Assignment
    order: EmptiestFirst
    width: int
    #: VMs that are not to be moved any more.
    settled: set[str]

    def repairing(self, goal: Goal) -> Iterator[Proposal]:
        """Proposals after which the goal is satisfied, whatever else they violate."""
        if goal.gathers:
            return self._gathering(goal)
        if goal.limit is not None:
            return self._parting(goal, goal.limit)
        if goal.sum is not None:
            return self._relieving(goal, goal.sum)
        if goal.allowed is not None:
            return self._to_hosts(goal, goal.allowed)
        if isinstance(goal.form, OnePlace):
            return chain(self._to_one_place(goal, goal.form.place_of), self._trying(goal))
        return self._trying(goal)

    def making_room(
        self, host: str, missing_mb: int, headroom_deficit: tuple[int, int] | None = None
    ) -> Iterator[Proposal]:
        """Proposals to take from a host what does not fit, or what makes its headroom deficit larger."""

        def missing() -> bool:
            if headroom_deficit is None:
                return host in self.assignment.overfull
            return self.assignment.headroom_deficit_of(host) > headroom_deficit

        yield from self._lightening((host,), missing_mb, self.assignment.size_mb, missing)

    def _relieving(self, goal: Goal, total: Sum) -> Iterator[Proposal]:
        """Of a rule that limits what is on some hosts in sum."""
        placement = self.assignment.placement

        def amount(block: Block) -> int:
            return sum(total.amounts[vm] for vm in block if goal in placement.problem.goals_of.get(vm, ()))

        hosts = tuple(sorted(total.hosts))
        return self._lightening(hosts, placement.faults(goal), amount, lambda: placement.violated(goal))

    def _relieved(self, block: Block) -> int:
        """How many sums would no longer be too large without a block."""
        placement = self.assignment.placement
        sums = {
            goal.number: goal
            for vm in block
            for goal in placement.problem.sums_with(placement.where(vm))
            if placement.violated(goal)
        }
        goals_of = placement.problem.goals_of
        return sum(
            sum(goal.sum.amounts[vm] for vm in block if goal in goals_of.get(vm, ()))
            >= placement.faults(goal)
            for goal in sums.values()
            if goal.sum is not None
        )

    def _lightening(
        self, hosts: tuple[str, ...], missing: int, size: Callable[[Block], int], lacks: Callable[[], bool]
    ) -> Iterator[Proposal]:
        """Single blocks that leave hosts and are large enough, then several, the largest first."""
        blocks = {block: of_it for host in hosts for block in self._leavers(host) if (of_it := size(block))}
        enough = [block for block, its in blocks.items() if its >= missing]
        enough.sort(key=lambda block: -self._relieved(block))
        for block in enough[:_MOST_SINGLES]:
            yield from self._one_to_each(block, but=hosts)
        if len(enough) < _MOST_SINGLES:
            largest_first = sorted(blocks, key=lambda block: -blocks[block] / len(block))
            yield from self._until(lacks, largest_first, hosts)

    # -- a goal of each shape

    def _to_hosts(self, goal: Goal, allowed: Allowed) -> Iterator[Proposal]:
        wrong = self._blocks(vm for vm in goal.vms if not allowed.allows(self.assignment.where(vm)))
        hosts = self.assignment.problem.hosts
        allows = allowed.hosts if allowed.positive else frozenset(hosts) - allowed.hosts
        yield from self._each_to_its_best(wrong or (), allows)

    def _to_one_place(self, goal: Goal, place_of: Mapping[str, str]) -> Iterator[Proposal]:
        """All to the hosts of one place, first of that in which most are: it may have no room for others."""
        hosts, where = self.assignment.problem.hosts, self.assignment.where
        there = Counter(place_of.get(where(vm)) for vm in goal.vms)
        places = {place_of[host] for host in hosts if host in place_of}
        for place in sorted(places, key=lambda place: (-there[place], place)):
            wrong = self._blocks(vm for vm in goal.vms if place_of.get(where(vm)) != place)
            its_hosts = (host for host in hosts if place_of.get(host) == place)
            yield from self._each_to_its_best(wrong or (), its_hosts)

    def _parting(self, goal: Goal, limit: AtMost) -> Iterator[Proposal]:
        assignment = self.assignment
        members: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for vm in goal.vms:
            members[limit.place(assignment.where(vm))][limit.own_set(vm)].append(vm)
        full = {place for place, sets in members.items() if len(sets) >= limit.most}
        taken = frozenset(host for host in assignment.problem.hosts if limit.place(host) in full)
        free = frozenset(assignment.problem.hosts) - taken
        crowds = [
            sorted(sets.values(), key=self._weight) for sets in members.values() if len(sets) > limit.most
        ]
        first, *others = crowds
        leave = [one for crowd in others for one in crowd[: -limit.most]]
        # Which sets of a place that has too many may stay: first those that had better.
        for last in range(len(first), limit.most - 1, -1):
            leaving = [*first[: last - limit.most], *first[last:]]
            blocks = self._blocks(chain.from_iterable((*leaving, *leave)))
            if blocks is None or any(goal.parts(frozenset(block)) for block in blocks):
                continue
            # With no place left for another member, one of them must go on from where another comes.
            yield from tuple(self._each_to_its_best(blocks, free)) or self._each_to_its_best(blocks, taken)
            if len(first) > self.width or others:
                return

    def _gathering(self, goal: Goal) -> Iterator[Proposal]:
        assignment = self.assignment
        hosts = allowed(assignment, goal.vms)
        meeting = company(assignment.problem, goal) if goal.hard and not goal.satisfied else None
        if meeting is not None and not meeting:
            return
        fixed = {assignment.where(vm) for vm in goal.vms if vm in self.settled}
        if fixed:
            hosts &= fixed
        ranked: list[tuple[bool, bool, int, int, str]] = []
        crowd = assignment.placement.crowd(goal)
        meeting_hosts = (
            best_hosts(assignment, self.order, goal.vms, self.width, but=crowd) if not fixed else ()
        )
        for host in (*crowd, *meeting_hosts):
            if host in hosts and (meeting is None or host in meeting or host not in crowd):
                coming = [vm for vm in goal.vms if assignment.where(vm) != host]
                memory_mb = assignment.size_mb(coming)
                full = assignment.placement.free_mb(host) < memory_mb
                ranked.append((full, host not in crowd, len(coming), memory_mb, host))
        hopeful = (
            rank for rank in sorted(ranked) if not rank[0] or self._can_make_room(goal, rank[-1], rank[3])
        )
        for *_, host in islice(hopeful, 2 * self.width):
            blocks = self._blocks(vm for vm in goal.vms if assignment.where(vm) != host)
            if blocks is not None and all(host in allowed(assignment, block) for block in blocks):
                yield {vm: host for block in blocks for vm in block}

    def _can_make_room(self, goal: Goal, host: str, memory_mb: int) -> bool:
        """Whether so much would fit, if all VMs left that may and are no members."""
        members = frozenset(goal.vms)
        leaving_mb = sum(
            self.assignment.problem.memory_mb[vm]
            for vm in self.assignment.residents(host)
            if vm not in members and vm not in self.settled and self.assignment.problem.targets[vm]
        )
        return self.assignment.placement.free_mb(host) + leaving_mb >= memory_mb

    def _trying(self, goal: Goal) -> Iterator[Proposal]:
        """Of a rule that says only whether it is satisfied."""
        for vm in goal.constraint.offenders(self.assignment.placement):
            if vm not in self.settled:
                yield from self._one_to_each(self.assignment.block(vm))

    # -- VMs to hosts

    def _each_to_its_best(self, blocks: Sequence[Block], among: Iterable[str]) -> Iterator[Proposal]:
        """All blocks to some hosts, each to its best after those before it; the first also to others."""
        among = frozenset(among)
        if not blocks:
            return
        first, *rest = blocks
        for host in best_hosts(self.assignment, self.order, first, self.width, among):
            mark = self.assignment.mark
            self.assignment.move(first, host)
            proposal = dict.fromkeys(first, host)
            for block in rest:
                found = best_hosts(self.assignment, self.order, block, 1, among)
                if not found:
                    proposal = {}
                    break
                self.assignment.move(block, found[0])
                proposal |= dict.fromkeys(block, found[0])
            self.assignment.back_to(mark)
            if proposal:
                yield proposal

    def _one_to_each(self, block: Block, but: tuple[str, ...] = ()) -> Iterator[Proposal]:
        for host in best_hosts(self.assignment, self.order, block, self.width, but=but):
            yield dict.fromkeys(block, host)

    def _until(
        self, missing: Callable[[], bool], blocks: Iterable[Block], hosts: tuple[str, ...]
    ) -> Iterator[Proposal]:
        """Blocks one after the other, until nothing is missing any more."""
        mark = self.assignment.mark
        proposal: dict[str, str] = {}
        for block in blocks:
            found = best_hosts(self.assignment, self.order, block, 1, but=hosts)
            if found and self.assignment.placement.free_mb(found[0]) >= self.assignment.size_mb(block):
                self.assignment.move(block, found[0])
                proposal |= dict.fromkeys(block, found[0])
            if not missing():
                break
        enough = not missing()
        self.assignment.back_to(mark)
        if enough and proposal:
            yield proposal

    def _leavers(self, host: str) -> list[Block]:
        """Blocks that may leave a host: those that moved anyway, then those that no goal minds."""
        found = {
            self.assignment.block(vm): None
            for vm in self.assignment.residents(host)
            if vm not in self.settled and self.assignment.problem.targets[vm]
        }
        free = [block for block in found if self.settled.isdisjoint(block)]
        moved, goals_of = self.assignment.placement.moved, self.assignment.problem.goals_of

        def rank(block: Block) -> tuple[int, int, int]:
            goals = sum(len(goals_of.get(vm, ())) for vm in block)
            return sum(vm not in moved for vm in block), goals, self.assignment.size_mb(block)

        return sorted(free, key=rank)

    def _blocks(self, vms: Iterable[str]) -> list[Block] | None:
        """The VMs with those that must come along, each once; None if one may not be moved."""
        blocks = list(dict.fromkeys(map(self.assignment.block, vms)))
        return blocks if all(map(self.settled.isdisjoint, blocks)) else None

    def _weight(self, vms: Collection[str]) -> tuple[bool, int, int, int]:
        """Sets that had better stay come last."""
        problem, moved = self.assignment.problem, self.assignment.placement.moved
        blocks = [self.assignment.block(vm) for vm in vms]
        return (
            any(vm in self.settled or not problem.targets[vm] for vm in vms),
            sum(vm not in moved for block in blocks for vm in block),
            sum(map(self.assignment.size_mb, blocks)),
            sum(len(problem.goals_of.get(vm, ())) for vm in vms),
        )
