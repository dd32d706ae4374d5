"""Which moves of a legal sequence wait for which, so that all others may run at once.

Every interleaving that keeps to the waits is legal, with any number of migrations running. Until a migration
has ended it holds memory on both hosts, counts on both for VMs that must be apart, and counts where it goes
for VMs that must be together, but nothing relies on it there.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ovirt_placement.planning.problem.problem import Goal, Move, Problem
from ovirt_placement.rules.elements.rule import AtMost


@dataclass(frozen=True, slots=True)
class Trip:
    """One VM in one move."""

    #: The place of the move in the sequence.
    at: int
    vm: str
    source: str
    target: str


def _trips(problem: Problem, moves: Sequence[Move]) -> Iterator[tuple[Trip, ...]]:
    """Of each move, those of its VMs."""
    where: dict[str, str] = {}
    for at, move in enumerate(moves):
        yield tuple(Trip(at, vm, where.get(vm, problem.where[vm]), move.host) for vm in move.vms)
        where.update(dict.fromkeys(move.vms, move.host))


class Waiting:
    """Moves are looked at one after another; those before the one that is looked at get no more waits."""

    def __init__(self, burdens: Sequence[int]) -> None:
        """`burdens` say how long each move takes compared with others."""
        self._burdens = burdens
        self._after: list[set[int]] = [set() for _ in burdens]
        #: Of each move so far, as bits, all that must have ended before it begins.
        self._ended: list[int] = []
        #: When each move so far ends at the soonest, in units of burden: to compare those to be waited for.
        self.end: list[int] = []

    def advance(self) -> None:
        at = len(self._ended)
        self._ended.append(0)
        self.end.append(self._burdens[at])
        for before in self._after[at]:
            self._count(at, before)

    def add(self, after: int, before: int) -> None:
        """Of the move that is looked at, or of a later one."""
        self._after[after].add(before)
        if after < len(self._ended):
            self._count(after, before)

    def has_ended(self, before: int, at: int) -> bool:
        """Whether a move has ended for certain when that at `at`, which is looked at, begins."""
        return bool(self._ended[at] >> before & 1)

    def reduced(self) -> tuple[tuple[int, ...], ...]:
        """Of each move those that it waits for and that none of these waits for."""
        return tuple(tuple(self._reduced(after)) for after in self._after)

    def _reduced(self, after: set[int]) -> list[int]:
        kept: list[int] = []
        ended = 0
        for before in sorted(after, reverse=True):
            if not ended >> before & 1:
                kept.append(before)
                ended |= self._ended[before]
        return kept[::-1]

    def _count(self, at: int, before: int) -> None:
        self._ended[at] |= self._ended[before] | 1 << before
        self.end[at] = max(self.end[at], self.end[before] + self._burdens[at])


@dataclass(frozen=True, slots=True)
class _Stay:
    """A VM is on a host from the end of one move to the beginning of another, or always."""

    since: int | None
    until: int | None


class Company:
    """Who can be relied on to be where."""

    def __init__(self, problem: Problem, travelling: Sequence[Sequence[Trip]]) -> None:
        self._problem = problem
        #: By host, VMs that are there for a while: first those that never leave.
        self._stays: defaultdict[str, list[tuple[str, _Stay]]] = defaultdict(list)
        came: dict[str, int] = {}
        passing: list[tuple[str, str, _Stay]] = []
        for its in travelling:
            for trip in its:
                passing.append((trip.source, trip.vm, _Stay(came.get(trip.vm), trip.at)))
                came[trip.vm] = trip.at
        for vm, host in problem.where.items():
            for there in problem.pending.get(vm) or (host,) if vm not in came else ():
                self._stays[there].append((vm, _Stay(None, None)))
        for its in travelling:
            for trip in its:
                if came[trip.vm] == trip.at:
                    passing.append((trip.target, trip.vm, _Stay(trip.at, None)))
        for host, vm, stay in sorted(passing, key=lambda one: one[1]):
            self._stays[host].append((vm, stay))

    def join(self, its: Sequence[Trip], waiting: Waiting) -> None:
        """Let the move that is looked at wait for a peer, and that peer for it.

        The peer also shows that the group does not stand whole on the host that is left, so that nothing
        that holds is violated. A group that moves as a whole has no peers besides it.
        """
        at, target = its[0].at, its[0].target
        moving = {trip.vm for trip in its}
        direct = (self._problem.peers.get(vm, frozenset()) for vm in moving)
        for peers in (frozenset().union(*direct), self._members(its[0].vm)):
            best = self._best(at, target, peers - moving, waiting)
            if best is not None and best.since is not None:
                waiting.add(at, best.since)
            if best is not None and best.until is not None:
                waiting.add(best.until, at)

    def _best(self, at: int, host: str, peers: frozenset[str], waiting: Waiting) -> _Stay | None:
        """Of the peers on a host when a move begins that which is to be waited for least."""
        found: tuple[tuple[bool, int, bool], _Stay] | None = None
        for vm, stay in self._stays[host] if peers else ():
            if vm in peers and _covers(stay, at):
                if stay.since is None and stay.until is None:
                    return stay
                cost = _cost(stay, at, waiting)
                if found is None or cost < found[0]:
                    found = cost, stay
        return None if found is None else found[1]

    def _members(self, vm: str) -> frozenset[str]:
        """Those that the VM must run with, through others as well."""
        goals = self._problem.goals_of.get(vm, ())
        hard = (goal for goal in goals if goal.hard and goal.gathers)
        return frozenset(member for goal in hard for member in goal.vms)


def _covers(stay: _Stay, at: int) -> bool:
    return (stay.since is None or stay.since < at) and (stay.until is None or stay.until > at)


def _cost(stay: _Stay, at: int, waiting: Waiting) -> tuple[bool, int, bool]:
    """Whether it must be waited for, for how long, and whether the peer must wait in turn."""
    waited = stay.since is not None and not waiting.has_ended(stay.since, at)
    return waited, waiting.end[stay.since] if waited and stay.since is not None else 0, stay.until is not None


@dataclass(slots=True)
class _Share:
    """What a move leaves behind on a host once it has ended, in MiB that no VM has claimed yet."""

    left_by: int
    free_mb: int


class Room:
    """Every MiB is claimed by one arrival at a time, so that all arrivals that wait for no more may begin."""

    def __init__(self, free_mb: Mapping[str, int]) -> None:
        #: Unclaimed from the start on; below 0 where a host has handed out more than it has.
        self._free_mb = dict(free_mb)
        self._shares: dict[str, list[_Share]] = {}
        #: Moves whose room fills up what a host lacks: no arrival may do without them.
        self._owed: dict[str, set[int]] = {}

    def enter(self, its: Sequence[Trip], memory_mb: Mapping[str, int], waiting: Waiting) -> None:
        """Claim room for all VMs of the move that is looked at, and leave behind what they had."""
        at, target = its[0].at, its[0].target
        self._pay(at, target, waiting)
        self._claim(at, target, sum(memory_mb[trip.vm] for trip in its), waiting)
        for trip in its:
            self._shares.setdefault(trip.source, []).append(_Share(at, memory_mb[trip.vm]))

    def _pay(self, at: int, host: str, waiting: Waiting) -> None:
        debt_mb = -self._free_mb[host]
        if debt_mb > 0:
            self._free_mb[host] = 0
            self._owed[host] = {share.left_by for share in self._lacking(host, debt_mb, waiting)}
            for share in self._shares.get(host, ()):
                debt_mb -= _claim(share, debt_mb) if share.left_by in self._owed[host] else 0
        for before in self._owed.get(host, ()):
            waiting.add(at, before)

    def _claim(self, at: int, host: str, needed_mb: int, waiting: Waiting) -> None:
        """What others left comes first, as far as it is there anyway: others may not be sure of it."""
        needed_mb -= self._claim_left(at, host, needed_mb, waiting)
        for share in self._lacking(host, needed_mb - self._free_mb[host], waiting):
            waiting.add(at, share.left_by)
        needed_mb -= self._claim_left(at, host, needed_mb, waiting)
        self._free_mb[host] -= needed_mb

    def _claim_left(self, at: int, host: str, needed_mb: int, waiting: Waiting) -> int:
        """Claim what moves that have ended for certain left behind, and say how much that is."""
        taken_mb = 0
        for share in self._shares.get(host, ()):
            if waiting.has_ended(share.left_by, at):
                taken_mb += _claim(share, needed_mb - taken_mb)
        return taken_mb

    def _lacking(self, host: str, needed_mb: int, waiting: Waiting) -> list[_Share]:
        """What must be waited for: of what is left behind soonest, as few shares as will do; else all."""
        chosen: list[_Share] = []
        left = [share for share in self._shares.get(host, ()) if share.free_mb]
        offered = _soonest(left, needed_mb, waiting)
        while needed_mb > 0 and offered:
            enough = [share for share in offered if share.free_mb >= needed_mb]
            best = min(enough or offered, key=lambda share: share.free_mb if enough else -share.free_mb)
            needed_mb -= best.free_mb
            offered.remove(best)
            chosen.append(best)
        return chosen


def _soonest(shares: Iterable[_Share], needed_mb: int, waiting: Waiting) -> list[_Share]:
    """No more of the shares than suffice, and of these those that are there first."""
    chosen: list[_Share] = []
    for share in sorted(shares, key=lambda share: (waiting.end[share.left_by], share.left_by)):
        if needed_mb <= 0:
            break
        chosen.append(share)
        needed_mb -= share.free_mb
    return chosen


def _claim(share: _Share, needed_mb: int) -> int:
    taken = min(share.free_mb, needed_mb)
    share.free_mb -= taken
    return taken


def waits(problem: Problem, moves: Sequence[Move]) -> tuple[tuple[int, ...], ...]:
    """Of each move the places of those that it waits for; those that these wait for are left out.

    `moves` are legal one by one in this sequence; one that is not, as it does not fit, waits for all that
    leave its target before it.
    """
    travelling = list(_trips(problem, moves))
    waiting = Waiting([sum(problem.memory_mb[vm] for vm in move.vms) for move in moves])
    for needed in (
        _own(travelling),
        _closed(problem, travelling),
        _rivals(problem, travelling),
        _summed(problem, travelling),
        _untold(problem, travelling),
    ):
        for after, before in needed:
            waiting.add(after, before)
    company, room = Company(problem, travelling), Room(problem.free_mb)
    for its in travelling:
        waiting.advance()
        company.join(its, waiting)
        room.enter(its, problem.memory_mb, waiting)
    return waiting.reduced()


def _own(travelling: Sequence[tuple[Trip, ...]]) -> Iterator[tuple[int, int]]:
    """A VM is migrated once at a time."""
    last: dict[str, int] = {}
    for its in travelling:
        for trip in its:
            if trip.vm in last:
                yield trip.at, last[trip.vm]
            last[trip.vm] = trip.at


def _closed(problem: Problem, travelling: Sequence[tuple[Trip, ...]]) -> Iterator[tuple[int, int]]:
    """The engine takes all along that run on the host that a closure leaves: no VM comes or goes then."""
    goals = {goal.number: goal for its in travelling for goal in _gathering(problem, its)}
    for number in sorted(goals):
        members = frozenset(goals[number].vms)
        mine = [its for its in travelling if its[0].vm in members]
        for place, its in enumerate(mine):
            for earlier in mine[:place]:
                if _meets(its, earlier) or _meets(earlier, its):
                    yield its[0].at, earlier[0].at


def _gathering(problem: Problem, its: tuple[Trip, ...]) -> Iterator[Goal]:
    """The group that a closure is of."""
    goals = _binding(problem, its[0].vm) if len(its) > 1 else iter(())
    return (goal for goal in goals if goal.gathers)


def _meets(closure: tuple[Trip, ...], other: tuple[Trip, ...]) -> bool:
    """Whether a move brings VMs to the host that a closure leaves, or takes some away."""
    source = closure[0].source
    return len(closure) > 1 and any(source in (trip.source, trip.target) for trip in other)


def _rivals(problem: Problem, travelling: Sequence[tuple[Trip, ...]]) -> Iterator[tuple[int, int]]:
    """A VM arrives where members of a limited group were only when these have left."""
    left: dict[tuple[int, str], list[Trip]] = {}
    for its in travelling:
        for trip in its:
            for goal, limit in _limited(problem, trip.vm):
                for earlier in left.get((goal.number, limit.place(trip.target)), ()):
                    if limit.own_set(earlier.vm) != limit.own_set(trip.vm):
                        yield trip.at, earlier.at
        for trip in its:
            for goal, limit in _limited(problem, trip.vm):
                left.setdefault((goal.number, limit.place(trip.source)), []).append(trip)


def _summed(problem: Problem, travelling: Sequence[tuple[Trip, ...]]) -> Iterator[tuple[int, int]]:
    """A VM comes to the hosts of a sum when all have left them that do so before it."""
    left: dict[int, list[int]] = {}
    for its in travelling:
        sums = {
            goal.number: goal.sum
            for trip in its
            for goal in problem.goals_between(trip.vm, trip.source, trip.target)
            if goal.binding and goal.sum is not None
        }
        for number, total in sums.items():
            if its[0].target in total.hosts:
                yield from ((its[0].at, earlier) for earlier in left.get(number, ()))
            else:
                left.setdefault(number, []).append(its[0].at)


def _limited(problem: Problem, vm: str) -> Iterator[tuple[Goal, AtMost]]:
    return ((goal, goal.limit) for goal in _binding(problem, vm) if goal.limit is not None)


def _untold(problem: Problem, travelling: Sequence[tuple[Trip, ...]]) -> Iterator[tuple[int, int]]:
    """What a rule without a form lets pass, or one that is violated, was tried in this sequence alone."""
    last: dict[int, int] = {}
    for its in travelling:
        for trip in its:
            for goal in _binding(problem, trip.vm):
                if goal.sum is None and (goal.collective or goal.lenient):
                    if last.get(goal.number, trip.at) != trip.at:
                        yield trip.at, last[goal.number]
                    last[goal.number] = trip.at


def _binding(problem: Problem, vm: str) -> Iterator[Goal]:
    return (goal for goal in problem.goals_of.get(vm, ()) if goal.binding)
