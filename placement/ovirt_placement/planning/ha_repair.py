"""The fewest migrations that restore an HA reservation, after those that repair rules."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice
from typing import Final, NamedTuple

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Deadline, LostReservation, Plan, Reservation
from ovirt_placement.planning.problem.bound import (
    BestFirst,
    Places,
    closures,
    legal_moves,
    places_after,
    put_at,
)
from ovirt_placement.planning.problem.build_problem import PlanOptions, pose
from ovirt_placement.planning.problem.ends import crowded
from ovirt_placement.planning.problem.placement import ProblemPlacement, placement_after
from ovirt_placement.planning.problem.problem import Goal, Move, Problem
from ovirt_placement.planning.reservation import Failing, failing
from ovirt_placement.planning.steps import Certified, apply, certify, moves_of, plan_seconds, refusal
from ovirt_placement.rules.elements.placement import World
from ovirt_placement.rules.failover.outcomes import Domain, Loss

#: A cluster with no more of these is searched as a whole.
_FEW_VMS: Final = 12
_FEW_HOSTS: Final = 6
#: In larger ones: failures that are looked at, VMs that are to start in each, hosts that could be homes of
#: these, the smallest and largest VMs that may leave each host, and hosts that these may go to.
_LOSSES: Final = 2
_STARTING: Final = 8
_HOMES: Final = 6
_LEAVING: Final = 3
_TARGETS: Final = 4


class Candidates:
    """Moves that are legal in a placement."""

    def __init__(self, snapshot: Snapshot, placement: ProblemPlacement) -> None:
        self._snapshot = snapshot
        self._placement = placement
        problem = placement.problem
        #: Whether all legal moves are among them.
        self.all = len(problem.hosts) <= _FEW_HOSTS and len(problem.memory_mb) <= _FEW_VMS

    def moves(self, losses: Sequence[Loss]) -> list[Move]:
        """The most promising first, each once."""
        problem = self._placement.problem
        if self.all:
            return legal_moves(self._placement, sorted(problem.memory_mb), problem.hosts)
        return list(dict.fromkeys(self._helpful(losses)))

    def _helpful(self, losses: Sequence[Loss]) -> Iterator[Move]:
        """For the failures with the most VMs without a home.

        Room is found for them where VMs that need no start make room, best on the very hosts that fail. What
        is to start may as well leave these hosts before.
        """
        placement = self._placement
        by_room = sorted(placement.problem.hosts, key=lambda host: -placement.free_mb(host))
        for loss in sorted(losses, key=lambda loss: -len(loss.unplaced))[:_LOSSES]:
            failing = [host for host in by_room if host in loss.hosts]
            others = [host for host in by_room if host not in loss.hosts]
            for host in others[:_HOMES]:
                for vm in self._leaving(host, ha=False):
                    yield from self._to(vm, failing, _TARGETS)
            starting = (vm for host in failing for vm in self._on(host, ha=True))
            for vm in islice(dict.fromkeys((*loss.unplaced, *starting)), _STARTING):
                yield from self._to(vm, others, _TARGETS)
            for host in others[:_HOMES]:
                for ha in (False, True):
                    for vm in self._leaving(host, ha=ha):
                        yield from self._to(vm, others, _TARGETS)

    def _leaving(self, host: str, *, ha: bool) -> list[str]:
        """The smallest and the largest of the VMs there that are highly available, or are not."""
        by_size = sorted(self._on(host, ha=ha), key=lambda vm: (self._placement.problem.memory_mb[vm], vm))
        return list(dict.fromkeys((*by_size[-_LEAVING:], *by_size[:_LEAVING])))

    def _on(self, host: str, *, ha: bool) -> Iterator[str]:
        for vm in sorted(self._placement.on(host)):
            if vm in self._placement.problem.memory_mb and self._snapshot.vm_by_id[vm].ha is ha:
                yield vm

    def _to(self, vm: str, hosts: Iterable[str], most: int) -> Iterator[Move]:
        placement = self._placement
        yield from islice((Move((vm,), host) for host in hosts if placement.legal(vm, host)), most)
        for vms in closures(placement, (vm,)):
            whole = (Move(vms, host) for host in hosts if placement.legal_closure(vms, host))
            yield from islice(whole, most)


#: States that are judged: this many at the least, and more where the cluster is small.
_LEAST_STATES: Final = 200
_STATES_TIMES_VMS: Final = 200_000

#: The share of the time for it; the rest is for leaving out what nothing is lost without.
_SEARCHING_SHARE: Final = 0.8


class Found(NamedTuple):
    """Moves in a legal sequence, what is lost after them, and whether no other legal moves do better."""

    moves: tuple[Move, ...]
    end: Failing
    proven: bool


class Search:
    """Best-first: the migrations made, and the VMs that find no home yet."""

    def __init__(
        self, snapshot: Snapshot, problem: Problem, domains: Sequence[Domain], *, roomy: bool
    ) -> None:
        """With `roomy`, nothing takes of the headroom of its target."""
        self._snapshot = snapshot
        self._problem = problem
        self._domains = domains
        self._roomy = roomy
        self._placement = ProblemPlacement(problem)
        self._start = ProblemPlacement(problem)
        self._candidates = Candidates(snapshot, self._placement)
        self._states_left = max(_LEAST_STATES, _STATES_TIMES_VMS // max(1, len(problem.memory_mb)))
        self._judged: dict[Places, Failing] = {}

    def run(self, start: Failing, deadline: Deadline) -> Found:
        """Search from a start where something is lost."""
        searching = deadline.within(_SEARCHING_SHARE)
        best = state = Places()
        self._judged[state] = start
        search: BestFirst[Places, Move] = BestFirst(state, self._rank(state, 0))
        while self._states_left > 0 and not searching.over and (found := search.take_next()) is not None:
            state = found
            if not self._judged[state].unplaced:
                return self._found(search.steps_to(state), state, deadline, proven=self._candidates.all)
            for new in self._next(search, state, searching):
                if self._judged[new].no_worse_than(start):
                    best = min(best, new, key=lambda one: (self._judged[one].unplaced, *search.cost(one)))
        # The last state may be left half done.
        whole = search.exhausted and self._states_left > 0 and not searching.over
        return self._found(search.steps_to(best), best, deadline, proven=self._candidates.all and whole)

    def _rank(self, places: Places, migrations: int) -> tuple[int, int, int]:
        """A lower bound of the migrations of the whole way, in a small cluster; elsewhere a guess."""
        unplaced = self._judged[places].unplaced
        ahead = min(1, unplaced) if self._candidates.all else unplaced
        return migrations + ahead, unplaced, sum(self._problem.memory_mb[vm] for vm, _ in places)

    def _next(self, search: BestFirst[Places, Move], state: Places, deadline: Deadline) -> list[Places]:
        """The states that one move leads to, in which no rule fares worse, and a cheaper way than known.

        In a large cluster only as far as one of them is better.
        """
        put_at(self._placement, state)
        judged, found = self._judged[state], list[Places]()
        for move in self._candidates.moves(judged.losses):
            if self._states_left <= 0 or deadline.over:
                break
            new = places_after(self._problem, state, move)
            migrations = search.cost(state)[0] + len(move.vms)
            if not search.cheaper(new, (migrations,)):
                continue
            put_at(self._placement, new)
            lost = self._judge(new) if self._keeps_rules() else None
            put_at(self._placement, state)
            # On the way, too, no more failures are lost than at the start.
            if lost is None or lost.unknown or len(lost.sets) > len(self._judged[Places()].sets):
                continue
            search.add(state, move, new, (migrations,), self._rank(new, migrations))
            found.append(new)
            if not self._candidates.all and lost.unplaced < judged.unplaced:
                break
        return found

    def _judge(self, places: Places) -> Failing:
        judged = self._judged.get(places)
        if judged is None:
            self._states_left -= 1
            there = World(self._snapshot).migrated(dict(places)).snapshot
            judged = self._judged[places] = failing(there, self._problem.cluster, self._domains)
        return judged

    def _keeps_rules(self) -> bool:
        """Whether no rule, hard or soft, is violated more than at the start, and headroom is left."""
        placement = self._placement
        goals = {goal.number: goal for vm in placement.moved for goal in self._problem.goals_of.get(vm, ())}
        if any(placement.violated(goal) and not self._as_before(goal) for goal in goals.values()):
            return False
        return not (self._roomy and crowded(placement))

    def _as_before(self, goal: Goal) -> bool:
        """Whether a violated goal was violated as much at the start."""
        if goal.satisfied:
            return False
        return self._placement.faults(goal) <= self._start.faults(goal)

    def _found(self, way: list[Move], places: Places, deadline: Deadline, *, proven: bool) -> Found:
        """Moves are left out that nothing is lost without."""
        moves, end = tuple(way), self._judged[places]
        if proven or not moves:
            return Found(moves, end, proven)
        for move in reversed(way):
            if deadline.over:
                break
            shorter = tuple(one for one in moves if one is not move)
            judged = self._replayed(shorter)
            if judged is not None and judged.no_worse_than(end):
                moves, end = shorter, judged
        one_is_needed = not end.unplaced and sum(len(move.vms) for move in moves) == 1
        return Found(moves, end, proven=one_is_needed)

    def _replayed(self, moves: Sequence[Move]) -> Failing | None:
        """What is lost after these moves; None if they are not legal one after the other."""
        put_at(self._placement, Places())
        for move in moves:
            if not self._placement.allows(move):
                return None
            self._placement.move(move.vms, move.host)
        return self._judge(frozenset(self._placement.moved.items())) if self._keeps_rules() else None


#: So often a plan is made again without a step that some rule refuses.
_MOST_REFUSALS: Final = 5


class Asked(NamedTuple):
    """What the plan was asked for."""

    snapshot: Snapshot
    frozen: Mapping[str, str] | Collection[str]
    refused: frozenset[tuple[str, str]]
    options: PlanOptions


def restored(plan: Plan, asked: Asked, deadline: Deadline) -> Plan:
    """The plan with migrations after its own that let every VM survive, or more of them than before.

    What is lost at its end is judged exactly, by the same check as the watch makes. A satisfied rule
    remains satisfied, and none is violated more; headroom is taken only where there is no other way.
    """
    snapshot, cluster = asked.snapshot, plan.cluster
    if not snapshot.cluster_by_id[cluster].ha_reservation:
        return plan
    end = reduce(apply, plan.steps, snapshot)
    start = failing(end, cluster, asked.options.domains)
    if not start.unplaced:
        return replace(plan, reservation=_reservation(start, proven=not start.unknown))
    refused = asked.refused
    for _ in range(_MOST_REFUSALS):
        problem = pose(end, cluster, asked.frozen, refused, asked.options)
        found = _search(end, problem, asked.options, start, deadline)
        certified = _certify(plan, found.moves, asked)
        if certified.refused is None:
            return _extended(plan, found, certified, asked, refused == asked.refused)
        refused = refused | refusal(certified.end, cluster, certified.refused).keys()
    return replace(plan, reservation=_reservation(start, proven=False))


def _search(
    end: Snapshot, problem: Problem, options: PlanOptions, start: Failing, deadline: Deadline
) -> Found:
    """Headroom is kept, if that does; else it is given up."""
    if not (options.memory_headroom or options.cpu_headroom):
        return Search(end, problem, options.domains, roomy=False).run(start, deadline)
    roomy = Search(end, problem, options.domains, roomy=True).run(start, deadline.within(0.5))
    if not roomy.end.unplaced:
        return roomy
    found = Search(end, problem, options.domains, roomy=False).run(start, deadline)
    return found if found.end.unplaced < roomy.end.unplaced else roomy


def _certify(plan: Plan, moves: Sequence[Move], asked: Asked) -> Certified:
    """All steps in one order, from the state of today: what can be done at once is."""
    problem = pose(asked.snapshot, plan.cluster, asked.frozen, options=asked.options)
    every = [*moves_of(plan.steps), *moves]
    return certify(asked.snapshot, problem, every)


def _extended(plan: Plan, found: Found, certified: Certified, asked: Asked, all_tried: bool) -> Plan:
    own = len(plan.steps)
    steps = (*certified.steps[:own], *(replace(step, reserves=True) for step in certified.steps[own:]))
    proven = found.proven and all_tried
    reservation = _reservation(found.end, proven=proven)
    if not found.moves:
        return replace(plan, reservation=reservation)
    end = pose(certified.end, plan.cluster, asked.frozen, options=asked.options)
    violated = {
        (goal.constraint.family, goal.constraint.groups, goal.hard)
        for goal in end.goals
        if not goal.satisfied
    }
    start = pose(asked.snapshot, plan.cluster, asked.frozen, options=asked.options)
    return replace(
        plan,
        steps=steps,
        remaining=tuple(one for one in plan.remaining if (one.family, one.groups, one.hard) in violated),
        crowded=crowded(placement_after(start, moves_of(steps))),
        proven=plan.proven and proven and not plan.steps,
        at_least=sum(len(move.vms) for move in found.moves) if proven and not plan.steps else plan.at_least,
        seconds=plan_seconds(steps),
        reservation=reservation,
    )


def _reservation(end: Failing, *, proven: bool) -> Reservation:
    lost = tuple(
        LostReservation(hosts=one.hosts, domains=one.domains, vms=one.unplaced) for one in end.losses
    )
    return Reservation(lost=lost, known=not end.unknown, proven=proven)
