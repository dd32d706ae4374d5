"""HA reservations: which failures are survived in a state, and the fewest migrations that restore them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

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
from ovirt_placement.planning.problem.build_problem import NOTHING_REFUSED, PlanOptions, pose
from ovirt_placement.planning.problem.ends import crowded
from ovirt_placement.planning.problem.placement import ProblemPlacement, are_legal, placement_after
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.steps import Certified, Frozen, certify, end_of, moves_of, plan_seconds, refusal
from ovirt_placement.rules.doubts import doubt
from ovirt_placement.rules.elements.placement import World
from ovirt_placement.rules.failover.check import DEFAULT_BUDGET, Starts, name_lost
from ovirt_placement.rules.failover.failures import judge_failures
from ovirt_placement.rules.failover.outcomes import Domain, Loss, Proven, to_survive


@dataclass(frozen=True)
class Failing:
    """All failures that a cluster is to survive, judged in one state."""

    measure: Starts
    proven: tuple[Proven, ...]

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        return tuple(loss for one in self.proven for loss in one.losses)

    @property
    def unknown(self) -> bool:
        """Whether some failures are not judged, for lack of steps."""
        return any(one.unjudged or one.unknown for one in self.proven)

    @cached_property
    def unplaced(self) -> int:
        """VMs without a home, over all failures that are lost."""
        return sum(len(loss.unplaced) for loss in self.losses)

    def no_worse_than(self, other: Failing) -> bool:
        """Whether nothing is lost that was not, and nothing is known less well."""
        return self.adds_none_to(other) and self.unplaced <= other.unplaced and not self.unknown

    def adds_none_to(self, other: Failing) -> bool:
        """Whether each failure that is lost is lost there, by itself or by a part of it.

        A domain goes by its name: it has fewer hosts while some are out.
        """
        sets = {loss.hosts for loss in other.losses}
        domains = {one for loss in other.losses for one in loss.domains}
        return all(
            domains.issuperset(loss.domains)
            if loss.domains
            else loss.hosts in sets or any(set(part).issubset(loss.hosts) for part in sets)
            for loss in self.losses
        )


def failing(
    snapshot: Snapshot, cluster: str, domains: Sequence[Domain], budget: int | None = None
) -> Failing:
    """Judge, as the watch does, every set of as many hosts as is to be survived, and every domain."""
    measure = Starts(snapshot, cluster)
    asked = to_survive(measure.hosts, snapshot.cluster_by_id[cluster].ha_failures, domains)
    steps = DEFAULT_BUDGET if budget is None else budget
    proven = (judge_failures(snapshot, measure, most, steps, units=units) for units, most in asked)
    return Failing(measure, tuple(proven))


# -- The fewest migrations that restore a reservation, after those that repair rules.
#: A cluster with no more of these is searched as a whole.
_FEW_VMS = 12
_FEW_HOSTS = 6
#: In larger ones: failures that are looked at, VMs that are to start in each, hosts that could be homes of
#: these, the smallest and largest VMs that may leave each host, and hosts that these may go to.
_LOSSES = 2
_STARTING = 8
_HOMES = 6
_LEAVING = 3
_TARGETS = 4
#: States that are judged: this many at the least, and more where the cluster is small.
_LEAST_STATES = 200
_STATES_TIMES_VMS = 200_000
#: The share of the time for it; the rest is for leaving out what nothing is lost without.
_SEARCHING_SHARE = 0.8


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
        #: Whether all legal moves are looked at.
        self._small = len(problem.hosts) <= _FEW_HOSTS and len(problem.memory_mb) <= _FEW_VMS
        self._states_left = max(_LEAST_STATES, _STATES_TIMES_VMS // max(1, len(problem.memory_mb)))
        self._judged: dict[Places, Failing] = {}

    def run(self, start: Failing, deadline: Deadline) -> Found:
        """Search from a start where something is lost."""
        searching = deadline.within(_SEARCHING_SHARE)
        best = state = Places()
        self._judged[state] = start
        search: BestFirst[Places, Move] = BestFirst(state, self._rank(state, 0))
        while self._states_left > 0 and not searching.over and (found := search.pop_next()) is not None:
            state = found
            if not self._judged[state].unplaced:
                return self._found(search.steps_to(state), state, deadline, proven=self._small)
            for new in self._next(search, state, searching):
                if self._judged[new].no_worse_than(start):
                    best = min(best, new, key=lambda one: (self._judged[one].unplaced, *search.cost(one)))
        # The last state may be left half done.
        whole = search.exhausted and self._states_left > 0 and not searching.over
        return self._found(search.steps_to(best), best, deadline, proven=self._small and whole)

    def _rank(self, places: Places, migrations: int) -> tuple[int, int, int]:
        """A lower bound of the migrations of the whole way, in a small cluster; elsewhere a guess."""
        unplaced = self._judged[places].unplaced
        ahead = min(1, unplaced) if self._small else unplaced
        return migrations + ahead, unplaced, sum(self._problem.memory_mb[vm] for vm, _ in places)

    def _next(self, search: BestFirst[Places, Move], state: Places, deadline: Deadline) -> Iterator[Places]:
        """The states that one move leads to, in which no rule fares worse, and a cheaper way than known.

        In a large cluster only as far as one of them is better.
        """
        put_at(self._placement, state)
        judged = self._judged[state]
        for move in self._moves(judged.losses):
            if self._states_left <= 0 or deadline.over:
                return
            new = places_after(self._problem, state, move)
            migrations = search.cost(state)[0] + len(move.vms)
            if not search.cheaper(new, (migrations,)):
                continue
            put_at(self._placement, new)
            lost = self._judge(new) if self._keeps_rules() else None
            put_at(self._placement, state)
            # On the way, too, no more failures are lost than at the start.
            if lost is None or lost.unknown or len(lost.losses) > len(self._judged[Places()].losses):
                continue
            search.add(state, move, new, (migrations,), self._rank(new, migrations))
            yield new
            if not self._small and lost.unplaced < judged.unplaced:
                return

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
        for goal in goals.values():
            as_before = not goal.satisfied and placement.faults(goal) <= self._start.faults(goal)
            if placement.violated(goal) and not as_before:
                return False
        return not (self._roomy and crowded(placement))

    def _found(self, moves_there: list[Move], places: Places, deadline: Deadline, *, proven: bool) -> Found:
        """Moves are left out that nothing is lost without."""
        moves, end = tuple(moves_there), self._judged[places]
        if proven or not moves:
            return Found(moves, end, proven)
        for move in reversed(moves_there):
            if deadline.over:
                break
            shorter = tuple(one for one in moves if one is not move)
            if are_legal(self._problem, shorter):
                put_at(self._placement, Places())
                self._placement.put({vm: one.host for one in shorter for vm in one.vms})
                where = frozenset(self._placement.moved.items())
                if self._keeps_rules() and self._judge(where).no_worse_than(end):
                    moves, end = shorter, self._judge(where)
        one_is_needed = not end.unplaced and sum(len(move.vms) for move in moves) == 1
        return Found(moves, end, proven=one_is_needed)

    def _moves(self, losses: Sequence[Loss]) -> Iterable[Move]:
        """Legal ones, the most promising first, each once; in a large cluster for the failures with most VMs.

        Room is found for these where VMs that need no start make room, best on the very hosts that fail. What
        is to start may as well leave these hosts before.
        """
        if self._small:
            return legal_moves(self._placement, sorted(self._problem.memory_mb), self._problem.hosts)
        found: list[Move] = []
        by_room = sorted(self._problem.hosts, key=lambda host: -self._placement.free_mb(host))
        for loss in sorted(losses, key=lambda loss: -len(loss.unplaced))[:_LOSSES]:
            failing = [host for host in by_room if host in loss.hosts]
            others = [host for host in by_room if host not in loss.hosts]
            homes = [(self._on(host, ha=False), self._on(host, ha=True)) for host in others[:_HOMES]]
            starting = (vm for host in failing for vm in sorted(self._on(host, ha=True)))
            few = islice(dict.fromkeys((*loss.unplaced, *starting)), _STARTING)
            found += self._to((vm for plain, _ in homes for vm in _ends(plain)), failing)
            found += self._to(few, others)
            found += self._to((vm for both in homes for vms in both for vm in _ends(vms)), others)
        return dict.fromkeys(found)

    def _on(self, host: str, *, ha: bool) -> list[str]:
        """VMs of a host that are highly available, or are not, the smallest first."""
        memory_mb, known = self._problem.memory_mb, self._snapshot.vm_by_id
        there = (vm for vm in self._placement.on(host) if vm in memory_mb and known[vm].ha is ha)
        return sorted(there, key=lambda vm: (memory_mb[vm], vm))

    def _to(self, vms: Iterable[str], hosts: Sequence[str]) -> Iterator[Move]:
        for vm in vms:
            for moving in ((vm,), *closures(self._placement, (vm,))):
                moves = (Move(moving, host) for host in hosts)
                yield from islice(filter(self._placement.allows, moves), _TARGETS)


def _ends(by_size: Sequence[str]) -> Iterable[str]:
    """The largest and the smallest."""
    return dict.fromkeys((*by_size[-_LEAVING:], *by_size[:_LEAVING]))


#: So often a plan is made again without a step that some rule refuses.
_MOST_REFUSALS = 5


class Asked(NamedTuple):
    """What a plan is asked for."""

    snapshot: Snapshot
    cluster: str
    frozen: Frozen
    refused: frozenset[tuple[str, str]]
    options: PlanOptions

    def pose(self, state: Snapshot, refused: Collection[tuple[str, str]] = NOTHING_REFUSED) -> Problem:
        """The same in another state, and with more that is refused."""
        return pose(state, self.cluster, self.frozen, {*self.refused, *refused}, self.options)


def restored(plan: Plan, asked: Asked, deadline: Deadline) -> Plan:
    """The plan with migrations after its own that let every VM survive, or more of them than before.

    What is lost at its end is judged exactly, by the same check as the watch makes. A satisfied rule
    remains satisfied, and none is violated more; headroom is taken only where there is no other way.
    """
    snapshot, cluster, options = asked.snapshot, plan.cluster, asked.options
    if not snapshot.cluster_by_id[cluster].ha_reservation:
        return plan
    if doubt(snapshot, cluster):
        return replace(plan, reservation=Reservation(lost=(), known=False, proven=False))
    end = end_of(snapshot, plan.steps)
    start = failing(end, cluster, options.domains)
    if not start.unplaced:
        return replace(plan, reservation=_reservation(start, proven=not start.unknown))

    def search(problem: Problem, *, roomy: bool, until: Deadline) -> Found:
        return Search(end, problem, options.domains, roomy=roomy).run(start, until)

    refused: frozenset[tuple[str, str]] = NOTHING_REFUSED
    for _ in range(_MOST_REFUSALS):
        problem = asked.pose(end, refused)
        if options.memory_headroom or options.cpu_headroom:
            found = search(problem, roomy=True, until=deadline.within(0.5))
            if found.end.unplaced:
                tight = search(problem, roomy=False, until=deadline)
                found = tight if tight.end.unplaced < found.end.unplaced else found
        else:
            found = search(problem, roomy=False, until=deadline)
        # All steps in one order, from the state of today: what can be done at once is.
        certified = certify(snapshot, asked.pose(snapshot), [*moves_of(plan.steps), *found.moves])
        if certified.refused is None:
            return _extended(plan, found, certified, asked, proven=found.proven and refused <= asked.refused)
        refused |= refusal(certified.end, cluster, certified.refused).keys()
    return replace(plan, reservation=_reservation(start, proven=False))


def _extended(plan: Plan, found: Found, certified: Certified, asked: Asked, *, proven: bool) -> Plan:
    reservation = _reservation(found.end, proven=proven)
    if not found.moves:
        return replace(plan, reservation=reservation)
    own = len(plan.steps)
    steps = (*certified.steps[:own], *(replace(step, reserves=True) for step in certified.steps[own:]))
    violated = {
        (goal.constraint.family, goal.constraint.groups, goal.hard)
        for goal in asked.pose(certified.end).goals
        if not goal.satisfied
    }
    return replace(
        plan,
        steps=steps,
        remaining=tuple(one for one in plan.remaining if (one.family, one.groups, one.hard) in violated),
        crowded=crowded(placement_after(asked.pose(asked.snapshot), moves_of(steps))),
        proven=plan.proven and proven and not own,
        at_least=sum(len(move.vms) for move in found.moves) if proven and not own else plan.at_least,
        seconds=plan_seconds(steps),
        reservation=reservation,
    )


def _reservation(end: Failing, *, proven: bool) -> Reservation:
    lost = tuple(
        LostReservation(hosts=one.hosts, domains=one.domains, vms=one.unplaced)
        for one in name_lost(end.measure, end.losses)
    )
    return Reservation(lost=lost, known=not end.unknown, proven=proven)
