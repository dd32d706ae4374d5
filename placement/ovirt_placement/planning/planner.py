"""Plans the repair of one cluster, certified by the rules step by step; what is not repaired, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ovirt_placement.model import Host, Snapshot
from ovirt_placement.planning.plan import (
    NEVER,
    Deadline,
    LostReservation,
    Obstacle,
    ObstacleKind,
    Plan,
    RefusedStep,
    Remaining,
)
from ovirt_placement.planning.problem.bound import least_migrations
from ovirt_placement.planning.problem.build_problem import (
    DEFAULT_OPTIONS,
    NOTHING_REFUSED,
    PlanOptions,
    vetoes,
)
from ovirt_placement.planning.problem.ends import Strategy, Value, crowded, value
from ovirt_placement.planning.problem.placement import placement_after
from ovirt_placement.planning.problem.problem import Goal, Problem
from ovirt_placement.planning.reservation import (
    Asked,
    Harm,
    avoidable_harm,
    harm,
    restored,
    safe_part,
)
from ovirt_placement.planning.steps import (
    Certified,
    Frozen,
    certify,
    moves_of,
    plan_seconds,
    refusal,
    why_staying,
)
from ovirt_placement.planning.strategies import OPTIMAL_IS_THERE, Solution, solve
from ovirt_placement.planning.strategies import strategy as default_strategy
from ovirt_placement.rules.doubts import held
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.elements.resources import required_mb
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind
from ovirt_placement.rules.rule_list import ENGINES_OWN

if TYPE_CHECKING:
    from ovirt_placement.planning.solver.core import Element

#: So often a plan is made again without a step that some rule refuses; after that, it ends before the step.
_MOST_REFUSALS = 20
#: And so often without the targets of one that would harm highly available VMs.
_MOST_HARMFUL = 3
#: The share of the time that is left for a plan; the rest is for what may refuse it, and for reasons: these
#: seconds, where there is little time, but not more than leaves that share for a plan.
_SOLVING_SHARE = 0.9
_CHECKING_SECONDS = 0.5
_LEAST_SOLVING_SHARE = 0.7
#: What a check may take beyond the time that there is, rather than that a plan is lost: a share of it, and
#: seconds.
_LATE_SHARE = 0.05
_LATE_SECONDS = 0.15
#: Where an HA reservation is to be restored, too, the share of the time that repairing rules may take.
_REPAIRING_SHARE = 0.6


@dataclass(frozen=True)
class _Attempt:
    snapshot: Snapshot
    problem: Problem
    solution: Solution
    certified: Certified

    @cached_property
    def harm(self) -> Harm | None:
        """What it would make worse for highly available VMs."""
        return harm(self.snapshot, self.certified.end, self.problem.cluster)

    @cached_property
    def avoidable(self) -> Harm | None:
        """The same but for what the rules that it repairs cost by themselves."""
        steps, end = self.certified.steps, self.certified.end
        return self.harm and avoidable_harm(self.snapshot, steps, end, self.problem.cluster)

    @cached_property
    def worth(self) -> Value:
        return value(self.problem, moves_of(self.certified.steps))


def make_plan(
    snapshot: Snapshot,
    cluster: str,
    frozen: Frozen = (),
    *,
    refused: Collection[tuple[str, str]] = NOTHING_REFUSED,
    options: PlanOptions = DEFAULT_OPTIONS,
    strategy: Strategy | None = None,
    deadline: Deadline = NEVER,
    explained: bool = True,
) -> Plan:
    """The migrations that leave the least violated in a cluster, and of such the fewest that were found.

    VMs in `frozen` stay where they are; `refused` are VMs with hosts that the engine would not have. Every
    step is checked by all rules that count in the cluster, and by the engine's own filters; one that they
    refuse is dropped, and the plan made again without it. While something is not known yet, nothing is moved.
    Without a deadline the work is bounded, not the time. Why rules are not repaired takes time to find out;
    it is left out if not `explained`.
    """
    strategy = strategy or default_strategy()
    asked = Asked(snapshot, cluster, held(snapshot, cluster) or frozen, frozenset(refused), options)
    planning = _Planning(asked, strategy, explained)
    if not options.reserve:
        return planning.repair(deadline)
    return restored(planning.repair(deadline.within(_REPAIRING_SHARE)), asked, deadline)


class _Planning(NamedTuple):
    """Repairs rules by a strategy."""

    asked: Asked
    strategy: Strategy
    explained: bool

    def repair(self, deadline: Deadline) -> Plan:
        """Plan; and again without what some rule refuses, or what would harm highly available VMs."""
        problem = self.asked.pose(self.asked.snapshot)
        if all(goal.satisfied or not goal.wanted for goal in problem.goals):
            end = End(self.asked.snapshot, problem, self.asked.frozen, proven=True)
            left = remains(end, deadline, explained=self.explained)
            return Plan(
                cluster=self.asked.cluster,
                strategy=self.strategy.name,
                seed=self.strategy.seed,
                remaining=left,
            )
        dropped: dict[tuple[str, str], RefusedStep] = {}
        harmful: set[tuple[str, str]] = set()
        found: Harm | None = None
        costly: _Attempt | None = None
        attempt = self._attempt(problem, deadline)
        for _ in range(_MOST_REFUSALS + _MOST_HARMFUL):
            step = attempt.certified.refused
            if deadline.over:
                break
            if step is not None and len(dropped) < _MOST_REFUSALS:
                dropped |= refusal(attempt.certified.end, self.asked.cluster, step)
            elif len(harmful) < _MOST_HARMFUL and attempt.harm:
                found = attempt.harm
                costly = costly or (None if attempt.avoidable else attempt)
                harmful |= {(vm, one.target) for one in attempt.certified.steps for vm in one.vms}
            else:
                break
            refused = dropped.keys() | harmful
            attempt = self._attempt(self.asked.pose(self.asked.snapshot, refused), deadline)
        if costly is not None and (attempt.harm or attempt.worth[:-1] > costly.worth[:-1]):
            attempt = costly
        refusals = tuple(dict.fromkeys(dropped.values()))
        return self._reported(attempt, refusals, found, {vm for vm, _ in harmful}, deadline)

    def _attempt(self, problem: Problem, deadline: Deadline) -> _Attempt:
        """The best of what is found, as far as the rules let it pass; a later one must be as good."""
        left = max(_CHECKING_SECONDS, deadline.seconds_left())
        share = max(_LEAST_SOLVING_SHARE, min(_SOLVING_SHARE, 1.0 - _CHECKING_SECONDS / left))
        late = deadline.later(_LATE_SHARE * left + _LATE_SECONDS)
        attempts: list[_Attempt] = []
        for solution in solve(problem, self.strategy, deadline.within(share, lent=0.0)):
            if attempts and solution.moves == attempts[-1].solution.moves:
                attempts[-1] = replace(attempts[-1], solution=solution)
            else:
                certified = certify(self.asked.snapshot, problem, solution.moves, late)
                attempts.append(_Attempt(self.asked.snapshot, problem, solution, certified))
        return min(reversed(attempts), key=lambda one: one.worth)

    def _reported(
        self,
        attempt: _Attempt,
        dropped: tuple[RefusedStep, ...],
        found: Harm | None,
        left_out: set[str],
        deadline: Deadline,
    ) -> Plan:
        """What is said of the last attempt; moves of VMs in `left_out` were left out for what was found."""
        asked, problem, certified = self.asked, attempt.problem, attempt.certified
        steps, end, lost, whole = certified.steps, certified.end, attempt.harm, certified.whole
        if attempt.avoidable:
            (steps, end), whole = safe_part(asked.snapshot, steps, asked.cluster), False
            lost, found = harm(asked.snapshot, end, asked.cluster), attempt.avoidable
            left_out |= {vm for step in certified.steps[len(steps) :] for vm in step.vms}
        # What was dropped on the way may only just have been refused: with it left out, nothing is proven.
        dropped_any = problem.refused != asked.refused
        proven = attempt.solution.proven and whole and not (problem.guessed or dropped_any)
        posed = asked.pose(end) if steps or dropped_any else problem
        ended = End(end, posed, asked.frozen, proven, found, frozenset(left_out), problem)
        at_least = attempt.solution.at_least
        if not whole or dropped_any:  # it was cut short, or made without what was only just refused
            at_least = least_migrations(problem, value(problem, moves_of(steps)), None)
        return Plan(
            cluster=asked.cluster,
            strategy=self.strategy.name,
            seed=self.strategy.seed,
            steps=steps,
            remaining=remains(ended, deadline, explained=self.explained),
            refused=dropped,
            crowded=crowded(placement_after(problem, moves_of(steps))),
            costs=(LostReservation(hosts=lost.hosts, domains=(), vms=lost.vms),) if lost else (),
            proven=proven,
            at_least=at_least,
            seconds=plan_seconds(steps),
        )


# -- Which rules a plan leaves violated, of every family, and what stands in the way of their repair.
_NOT_UP = ReasonKind("host_not_up", "the host is {status}", veto=True)

#: VMs and hosts that are asked about.
_MOST_VMS = 8
_MOST_HOSTS = 12


def _refusals(snapshot: Snapshot, problem: Problem, goal: Goal, free: Collection[str]) -> Iterator[Obstacle]:
    """Why hosts refuse those VMs that may move.

    Of a positive group: the hosts of its peers, and other hosts all together; else any host each VM.
    """
    offenders = goal.constraint.offenders(SnapshotPlacement(snapshot))
    vms = [vm for vm in sorted(offenders) if vm in free][:_MOST_VMS]
    gathers = goal.gathers
    there = {problem.where[vm] for vm in goal.vms}
    asked = sorted(snapshot.hosts_of_cluster.get(problem.cluster, ()), key=lambda one: (-one.free_mb, one.id))
    fitting = [host for host in asked if goal.right(host.id) and (not gathers or host.id in there)]
    for vm in vms:
        for host in fitting[:_MOST_HOSTS]:
            if host.id != problem.where[vm]:
                yield from _why_not(snapshot, (vm,), host)
    if gathers and goal.hard and vms:
        for host in [host for host in asked if host.id not in there][:_MOST_HOSTS]:
            yield from _why_not(snapshot, goal.vms, host, together=True)


def _why_not(
    snapshot: Snapshot, vms: tuple[str, ...], host: Host, *, together: bool = False
) -> Iterator[Obstacle]:
    refused = ObstacleKind.REFUSED_TOGETHER if together else ObstacleKind.REFUSED
    if not host.up:
        yield Obstacle(refused, vms, (host.id,), reasons=(Reason(_NOT_UP, status=host.status),))
        return
    found = list(vetoes(snapshot, host.cluster, vms, host.id))
    ours = [reason for rule, reason in found if rule not in ENGINES_OWN]
    for reason in ours or [reason for _, reason in found]:
        if not reason.kind.memory:
            yield Obstacle(refused, vms, (host.id,), reasons=(reason,))
    if any(reason.kind.memory for _, reason in found):
        needed = sum(required_mb(snapshot.vm_by_id[vm]) for vm in vms)
        lacking = ObstacleKind.NO_MEMORY_TOGETHER if together else ObstacleKind.NO_MEMORY
        yield Obstacle(lacking, vms, (host.id,), needed=needed, available=host.free_mb)


#: Rules that are explained by what blocks them; of more, only what refuses their VMs is reported.
_MOST_EXPLAINED = 20


@dataclass(frozen=True, slots=True)
class End:
    """What a plan leads to, posed as a problem again, and whether all other plans were ruled out."""

    snapshot: Snapshot
    problem: Problem
    frozen: Frozen
    proven: bool
    #: What moves that were left out would have made worse when hosts fail, and the VMs of these moves.
    harm: Harm | None = None
    left_out: frozenset[str] = frozenset()
    #: What the plan began with; None where it is the same.
    start: Problem | None = None

    def stays(self, vm: str) -> Obstacle | None:
        """Why a VM is not moved, wherever to; None if it may be."""
        return why_staying(self.snapshot, self.snapshot.vm_by_id[vm], self.frozen)


def remains(end: End, deadline: Deadline, *, explained: bool = True) -> tuple[Remaining, ...]:
    """Every violation; what was not to be repaired is not explained, nor anything if not `explained`."""
    violated = [goal for goal in end.problem.goals if not goal.satisfied]
    reported = [goal for goal in violated if goal.wanted][:_MOST_EXPLAINED] if explained else []
    return tuple(_remaining(end, goal, deadline, explained=goal in reported) for goal in violated)


def _remaining(end: End, goal: Goal, deadline: Deadline, *, explained: bool) -> Remaining:
    constraint = goal.constraint
    return Remaining(
        groups=constraint.groups,
        family=constraint.family,
        asks=constraint.asks,
        hard=goal.hard,
        vms=goal.vms,
        obstacles=tuple(dict.fromkeys(_obstacles(end, goal, deadline))) if explained else (),
    )


def _obstacles(end: End, goal: Goal, deadline: Deadline) -> Iterator[Obstacle]:
    yield from _partly_repaired(end, goal)
    blocking: tuple[Element, ...] | None = None
    if _needs(goal) > _places(end.problem, goal):
        blocking = ()
    elif OPTIMAL_IS_THERE and not deadline.over:
        # Only here, so that all else works without OR-Tools.
        from ovirt_placement.planning.solver.core import core

        blocking = core(end.problem, goal, deadline)
    if blocking is not None:
        yield from (_obstacle(end, goal, element) for element in blocking)
        if not blocking:
            yield _by_itself(end.problem, goal)
    elif end.harm is not None and (vms := tuple(vm for vm in goal.vms if vm in end.left_out)):
        lost = end.harm
        yield Obstacle(
            ObstacleKind.RESERVATION, vms, lost.hosts, unplaced=lost.vms, needed=lost.then, available=lost.now
        )
    elif end.proven:
        yield Obstacle(ObstacleKind.NO_SEQUENCE)
    else:
        yield Obstacle(ObstacleKind.NOT_FOUND)
    staying = {vm: why for vm in goal.vms if (why := end.stays(vm)) is not None}
    yield from staying.values()
    free = () if deadline.over else [vm for vm in goal.vms if vm not in staying]
    for refused in _refusals(end.snapshot, end.problem, goal, free):
        yield refused
        if deadline.over:
            break


def _partly_repaired(end: End, goal: Goal) -> Iterator[Obstacle]:
    """By how much a rule remains violated, and was before; and how much of what was above limits is not now.

    Of what is limited in sum in any case; of other rules where the plan has brought them nearer.
    """
    problems = (end.start or end.problem, end.problem)
    before, now = (_excess(problem, goal) for problem in problems)
    if goal.sum is not None:
        exceeded, left = (
            sum(one.sum is not None and one.wanted and not one.satisfied for one in problem.goals)
            for problem in problems
        )
        yield Obstacle(
            ObstacleKind.ABOVE,
            needed=now,
            available=goal.sum.most,
            count=exceeded,
            repaired=exceeded - left,
            before=before,
        )
    elif goal.partly and now < before:
        full, left = (_places_above(problem, goal) for problem in problems)
        yield Obstacle(ObstacleKind.NEARER, needed=now, before=before, count=full, repaired=full - left)


def _excess(problem: Problem, goal: Goal) -> int:
    count = problem.start_count(_alike(problem, goal))
    return 0 if count is None else count.faults


def _alike(problem: Problem, goal: Goal) -> Goal:
    """The same rule in another problem of the cluster."""
    rule = (goal.constraint.family, goal.constraint.groups, goal.vms)
    alike = (one for one in problem.goals if (one.constraint.family, one.constraint.groups, one.vms) == rule)
    return next(alike, goal)


def _places_above(problem: Problem, goal: Goal) -> int:
    """How many hosts, or failure domains, have more than a limit."""
    limit = goal.limit
    if limit is None:
        return 0
    sets: defaultdict[str, set[str]] = defaultdict(set)
    for vm in goal.vms:
        sets[limit.place(problem.where[vm])].add(limit.own_set(vm))
    return sum(len(there) > limit.most for there in sets.values())


def _places(problem: Problem, goal: Goal) -> int:
    """How many places its VMs can be on: hosts that are up, and those that they are on, or their domains."""
    hosts = {*problem.hosts, *(problem.where[vm] for vm in goal.vms)}
    return len(hosts) if goal.limit is None else len({*map(goal.limit.place, hosts)})


def _needs(goal: Goal) -> int:
    """How many places a rule needs that limits its VMs; else none."""
    return -(-len(goal.limit.sets(goal.vms)) // goal.limit.most) if goal.limit is not None else 0


def _by_itself(problem: Problem, goal: Goal) -> Obstacle:
    """Why a rule cannot be satisfied, though nothing stands against it but the hosts that there are."""
    if goal.limit is None:
        return Obstacle(ObstacleKind.NO_HOST if problem.hosts else ObstacleKind.NO_HOST_UP)
    each = goal.limit.most == 1 and not goal.limit.set_of
    return Obstacle(
        ObstacleKind.HOST_EACH if each else ObstacleKind.PLACES,
        needed=_needs(goal),
        available=_places(problem, goal),
        count=len(goal.vms),
    )


def _obstacle(end: End, goal: Goal, element: Element) -> Obstacle:
    if element.goal is not None:
        shared = tuple(vm for vm in element.goal.vms if vm in goal.vms) or element.goal.vms
        asks = element.goal.constraint.asks
        return Obstacle(ObstacleKind.RULE, shared, groups=element.ids, asks=asks)
    first = element.ids[0]
    if element.kind is ObstacleKind.STAYS:
        return end.stays(first) or Obstacle(ObstacleKind.STAYS, (first,))
    if element.kind is ObstacleKind.TARGETS:
        return Obstacle(ObstacleKind.TARGETS, (first,), tuple(sorted(end.problem.targets[first])))
    return Obstacle(ObstacleKind.MEMORY, hosts=(first,), available=end.problem.free_mb[first])
