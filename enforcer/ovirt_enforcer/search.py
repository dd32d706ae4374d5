"""Finds the shortest sequence of legal moves that mends groups: best-first, exact until its work budget ends.

A legal move never breaks a group that holds and never adds a collision to a negative one (the filters see to
that), so whatever is found at any moment is at least as good as the start.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush

from ovirt_enforcer.placement import Moved, Placement
from ovirt_enforcer.problem import Apart, Group, Move, Problem, Together


@dataclass(frozen=True, slots=True, order=True)
class Score:
    """How much is wrong; less is better. Parting some members of a negative group helps, even if not all."""

    broken: int
    collisions: int


@dataclass(slots=True)
class Budget:
    """Placements that may still be looked at: a measure of work that is the same on every machine."""

    left: int

    def spend(self) -> bool:
        self.left -= 1
        return self.left >= 0


@dataclass(frozen=True, slots=True)
class Found:
    """The best that a search came to."""

    moves: tuple[Move, ...]
    score: Score
    #: Nothing better, and nothing as good with fewer migrations, exists.
    proven: bool

    @property
    def migrations(self) -> int:
        return sum(len(move.vms) for move in self.moves)


@dataclass(frozen=True)
class Goal:
    """The groups to mend, and what can be said of them without a search."""

    problem: Problem
    groups: tuple[Group, ...]

    def score(self, placement: Placement) -> Score:
        return Score(
            sum(placement.broken(group) for group in self.groups),
            sum(placement.collisions(group.vms) for group in self.groups if isinstance(group, Apart)),
        )

    def best_conceivable(self, placement: Placement) -> Score:
        """A score that no sequence of moves from here can better."""
        fewest = [self.problem.fewest_collisions[group] for group in self.groups if isinstance(group, Apart)]
        lost = sum(isinstance(group, Together) and self.hopeless(group, placement) for group in self.groups)
        return Score(lost + sum(collisions > 0 for collisions in fewest), sum(fewest))

    def hopeless(self, group: Together, placement: Placement) -> bool:
        """Whether a positive group stays split: no host may take it all, or two members must not meet."""
        return placement.broken(group) and (
            not self.problem.gathering_hosts[group]
            or any(
                placement.where(rival) != placement.where(vm)
                for vm in group.vms
                for rival in self.problem.rivals[vm] & group.vms
            )
        )

    def needs(self, placement: Placement, known: Sequence[int] = (), moved: Iterable[str] = ()) -> list[int]:
        """Of each group, a lower bound of the migrations that mend it as far as it can be.

        `known` are the needs before the VMs in `moved` migrated; only what those change is computed again.
        """
        if not known:
            return [self._need(group, placement) for group in self.groups]
        needs = list(known)
        for number in {number for vm in moved for number in self._groups_of[vm]}:
            needs[number] = self._need(self.groups[number], placement)
        return needs

    def migrations_needed(self, needs: Sequence[int]) -> int:
        """A lower bound of all migrations: the needs of groups that share no VM add up."""
        total = 0
        counted: set[str] = set()
        overlapping = []
        for number, need in enumerate(needs):
            if need and self._alone[number]:
                total += need
            elif need:
                overlapping.append((-need, number))
        for negative_need, number in sorted(overlapping):
            if counted.isdisjoint(self.groups[number].vms):
                counted |= self.groups[number].vms
                total -= negative_need
        return total

    @cached_property
    def _groups_of(self) -> defaultdict[str, list[int]]:
        numbers = defaultdict(list)
        for number, group in enumerate(self.groups):
            for vm in group.vms:
                numbers[vm].append(number)
        return numbers

    @cached_property
    def _alone(self) -> list[bool]:
        return [all(len(self._groups_of[vm]) == 1 for vm in group.vms) for group in self.groups]

    def _need(self, group: Group, placement: Placement) -> int:
        if isinstance(group, Apart):
            return max(0, placement.collisions(group.vms) - self.problem.fewest_collisions[group])
        if not placement.broken(group) or self.hopeless(group, placement):
            return 0
        crowds = Counter(placement.where(vm) for vm in group.vms)
        return len(group.vms) - max(crowds[host] for host in self.problem.gathering_hosts[group])


@dataclass(frozen=True, slots=True, order=True)
class _Node:
    """A placement in the queue: by estimated length of the whole plan, then by what is left of it."""

    estimate: int
    needed: int
    order: int
    migrations: int = field(compare=False)
    moved: Moved = field(compare=False)
    #: First the members of broken groups move; a turn later all that might make room for them.
    make_room: bool = field(compare=False)


def search(goal: Goal, start: Placement, budget: Budget, *, whole: bool, below: int | None = None) -> Found:
    """A* from `start` towards the best conceivable score.

    With `whole`, every movable VM may make room and the answer is exact if the budget lasts; else only VMs
    that are in the way of others are tried. `below` is the length of a perfect plan that is known already.
    """
    return _Search(goal, start, budget, whole).run(below)


class _Search:
    """The queue of one search and how each placement in it was reached."""

    def __init__(self, goal: Goal, start: Placement, budget: Budget, whole: bool) -> None:
        self._goal = goal
        self._budget = budget
        self._whole = whole
        self._perfect = goal.best_conceivable(start)
        self._best = (goal.score(start), 0, start.moved)
        self._reached: dict[Moved, tuple[int, Moved, Move | None]] = {start.moved: (0, start.moved, None)}
        self._queue: list[_Node] = []
        self._order = 0
        self._push(start.moved, 0, goal.migrations_needed(goal.needs(start)))

    def run(self, below: int | None) -> Found:
        exhausted = False
        while self._queue and not exhausted:
            node = heappop(self._queue)
            if below is not None and node.estimate >= below:
                break
            if self._reached[node.moved][0] < node.migrations:
                continue
            placement = Placement(self._goal.problem, node.moved)
            score = self._goal.score(placement)
            self._best = min(self._best, (score, node.migrations, node.moved))
            if score <= self._perfect:
                break
            exhausted = not self._expand(node, placement)
        score, _, moved = self._best
        return Found(self._path(moved), score, self._whole and not exhausted)

    def _expand(self, node: _Node, placement: Placement) -> bool:
        """Queue what can be reached in one move; False when the budget ends."""
        if not node.make_room:
            # A VM that is in no broken group mends nothing itself: such moves cost one more in any case.
            self._push(node.moved, node.migrations, node.needed, make_room=True)
        needs = self._goal.needs(placement)
        for move in _moves(self._goal, placement, make_room=node.make_room, whole=self._whole):
            if not self._budget.spend():
                return False
            after = placement.after(move)
            migrations = node.migrations + len(move.vms)
            known = self._reached.get(after.moved)
            if known is None or migrations < known[0]:
                self._reached[after.moved] = (migrations, node.moved, move)
                needed = self._goal.migrations_needed(self._goal.needs(after, needs, move.vms))
                self._push(after.moved, migrations, needed)
        return True

    def _push(self, moved: Moved, migrations: int, needed: int, *, make_room: bool = False) -> None:
        self._order += 1
        estimate = migrations + needed + make_room
        heappush(self._queue, _Node(estimate, needed, self._order, migrations, moved, make_room))

    def _path(self, moved: Moved) -> tuple[Move, ...]:
        moves: list[Move] = []
        _, before, move = self._reached[moved]
        while move is not None:
            moves.append(move)
            _, before, move = self._reached[before]
        return tuple(reversed(moves))


def _moves(goal: Goal, placement: Placement, *, make_room: bool, whole: bool) -> Iterator[Move]:
    """Legal moves: of members of broken groups, or of all others that could make room for them."""
    problem = goal.problem
    members = {vm for group in goal.groups if placement.broken(group) for vm in group.vms}
    movers = _others(problem, placement, members, whole=whole) if make_room else members
    for vm in problem.movable:
        if vm in movers:
            yield from (Move((vm,), host) for host in problem.hosts if placement.legal(vm, host))
    for group in problem.together:
        if not group.vms.isdisjoint(movers) and make_room is group.vms.isdisjoint(members):
            closure = tuple(sorted(group.vms))
            yield from (Move(closure, host) for host in problem.hosts if placement.legal_closure(group, host))


def _others(problem: Problem, placement: Placement, members: set[str], *, whole: bool) -> set[str]:
    if whole:
        return set(problem.movable) - members
    return _in_the_way(problem, placement, members) - members


def _in_the_way(problem: Problem, placement: Placement, members: set[str]) -> set[str]:
    """VMs whose leaving could open a host to a member, or to another VM in the way."""
    by_host = placement.movable_by_host()
    waiting = sorted(members)
    found: set[str] = set()
    while waiting:
        vm = waiting.pop()
        for host in problem.allowed[vm]:
            if host != placement.where(vm) and not placement.legal(vm, host):
                blockers = placement.rivals_on(vm, host) or set(by_host.get(host, ()))
                waiting.extend(sorted(blockers - found - members))
                found |= blockers
    return found
