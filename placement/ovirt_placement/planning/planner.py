"""Plans the repair of one cluster, certified by the rules step by step."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import NamedTuple, Self

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import NEVER, Deadline, LostReservation, Plan, RefusedStep
from ovirt_placement.planning.problem.bound import least_migrations
from ovirt_placement.planning.problem.build_problem import DEFAULT_OPTIONS, NOTHING_REFUSED, PlanOptions
from ovirt_placement.planning.problem.ends import Strategy, Value, crowded, value
from ovirt_placement.planning.problem.placement import placement_after
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.remaining import End, Harm, avoidable_harm, harm, remains, safe_part
from ovirt_placement.planning.reservation import Asked, restored
from ovirt_placement.planning.steps import Certified, Frozen, certify, moves_of, plan_seconds, refusal
from ovirt_placement.planning.strategies import Solution, solve
from ovirt_placement.planning.strategies import strategy as default_strategy
from ovirt_placement.rules.doubts import held

#: So often a plan is made again without a step that some rule refuses; after that, it ends before the step.
_MOST_REFUSALS = 20
#: And so often without the targets of one that would harm highly available VMs.
_MOST_HARMFUL = 3
#: The share of the time that is left for a plan; the rest is for what may refuse it, and for reasons: these
#: seconds, where there is little time, but not more than leaves that share for a plan.
_SOLVING_SHARE = 0.9
_CHECKING_SECONDS = 0.5
_LEAST_SOLVING_SHARE = 0.7
#: In a large cluster the rest takes this many times as long as it took to pose the problem, and may leave no
#: more than this share.
_CHECKS_A_POSE = 6.0
_LEAST_SHARE = 0.4
#: Where failures are to be survived, of that share: the rest is for a plan without what would do harm.
_HARMFUL_SHARE = 0.5
#: What a check may take beyond the time that there is, rather than that a plan is lost: a share of it, and
#: seconds.
_LATE_SHARE = 0.05
_LATE_SECONDS = 0.15
#: Where an HA reservation is to be restored, too, the share of the time that repairing rules may take.
_REPAIRING_SHARE = 0.6


@dataclass(frozen=True)
class _Attempt:
    asked: Asked
    problem: Problem
    solution: Solution
    certified: Certified
    #: What steps would do that were cut off, and the VMs of these.
    prevented: Harm | None = None
    left_out: frozenset[str] = frozenset()

    @cached_property
    def harm(self) -> Harm | None:
        """What it would make worse for highly available VMs."""
        asked = self.asked
        return harm(asked.snapshot, self.certified.end, asked.cluster, asked.options.domains)

    @cached_property
    def avoidable(self) -> Harm | None:
        """The same but for what the rules that it repairs cost by themselves."""
        asked, steps, end = self.asked, self.certified.steps, self.certified.end
        domains = asked.options.domains
        return self.harm and avoidable_harm(asked.snapshot, steps, end, asked.cluster, domains)

    @cached_property
    def worth(self) -> Value:
        return value(self.problem, moves_of(self.certified.steps))

    def cut_off(self, deadline: Deadline) -> Self:
        """As far as it does no harm that can be avoided."""
        if self.avoidable is None:
            return self
        asked, whole = self.asked, self.certified.steps
        steps, end = safe_part(asked.snapshot, whole, asked.cluster, asked.options.domains, deadline)
        left_out = frozenset(vm for step in whole[len(steps) :] for vm in step.vms)
        safe = Certified(steps, end, refused=None, whole=False)
        return replace(self, certified=safe, prevented=self.avoidable, left_out=left_out)


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
    asked = Asked(snapshot, cluster, held(snapshot, cluster) or frozen, frozenset(refused), options)
    planning = _Planning(asked, strategy or default_strategy(), explained)
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
        asked, strategy = self.asked, self.strategy
        began = deadline.seconds_left()
        problem = asked.pose(asked.snapshot)
        posing = 0.0 if began == inf else began - deadline.seconds_left()
        if all(goal.satisfied or not goal.wanted for goal in problem.goals):
            end = End(asked.snapshot, problem, asked.frozen, proven=True)
            left = remains(end, deadline, explained=self.explained)
            return Plan(cluster=asked.cluster, strategy=strategy.name, seed=strategy.seed, remaining=left)
        dropped: dict[tuple[str, str], RefusedStep] = {}
        harmful: set[tuple[str, str]] = set()
        found: Harm | None = None
        costly: _Attempt | None = None
        unsafe: list[_Attempt] = []
        attempt = self._attempt(problem, posing, deadline)
        for _ in range(_MOST_REFUSALS + _MOST_HARMFUL):
            step = attempt.certified.refused
            if deadline.over:
                break
            if step is not None and len(dropped) < _MOST_REFUSALS:
                dropped |= refusal(attempt.certified.end, asked.cluster, step)
            elif len(harmful) < _MOST_HARMFUL and attempt.harm:
                found = attempt.harm
                if attempt.avoidable:
                    unsafe.append(attempt)
                else:
                    costly = costly or attempt
                harmful |= {(vm, one.target) for one in attempt.certified.steps for vm in one.vms}
            else:
                break
            problem = asked.pose(asked.snapshot, dropped.keys() | harmful)
            attempt = self._attempt(problem, posing, deadline)
        if costly is not None and (attempt.harm or attempt.worth[:-1] > costly.worth[:-1]):
            attempt = costly
        attempt = attempt.cut_off(deadline)
        better = (one for one in unsafe if one.worth < attempt.worth)  # as they may be without harm
        attempt = min((attempt, *(one.cut_off(deadline) for one in better)), key=lambda one: one.worth)
        refusals = tuple(dict.fromkeys(dropped.values()))
        return self._reported(attempt, refusals, found, {vm for vm, _ in harmful}, deadline)

    def _attempt(self, problem: Problem, posing: float, deadline: Deadline) -> _Attempt:
        """The best of what is found, as far as the rules let it pass; a later one must be as good.

        Problems of this cluster take `posing` seconds to be posed.
        """
        left = max(_CHECKING_SECONDS, deadline.seconds_left())
        reserves = self.asked.snapshot.cluster_by_id[self.asked.cluster].ha_reservation
        share = _solving_share(left, posing) * (_HARMFUL_SHARE if reserves else 1.0)
        late = deadline.later(_LATE_SHARE * left + _LATE_SECONDS)
        attempts: list[_Attempt] = []
        for solution in solve(problem, self.strategy, deadline.within(share, lent=0.0)):
            if attempts and solution.moves == attempts[-1].solution.moves:
                attempts[-1] = replace(attempts[-1], solution=solution)
            else:
                certified = certify(self.asked.snapshot, problem, solution.moves, late)
                attempts.append(_Attempt(self.asked, problem, solution, certified))
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
        found, left_out = attempt.prevented or found, left_out | attempt.left_out
        # What was dropped on the way may only just have been refused: with it left out, nothing is proven.
        dropped_any = problem.refused != asked.refused
        proven = attempt.solution.proven and whole and not dropped_any
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
            costs=(LostReservation(lost.hosts, lost.domains, lost.vms),) if lost else (),
            proven=proven,
            at_least=at_least,
            seconds=plan_seconds(steps),
        )


def _solving_share(left: float, posing: float) -> float:
    """The share of the seconds left in which solutions are looked for, by how long it took to pose one."""
    small = max(_LEAST_SOLVING_SHARE, min(_SOLVING_SHARE, 1.0 - _CHECKING_SECONDS / left))
    return min(small, max(_LEAST_SHARE, 1.0 - _CHECKS_A_POSE * posing / left))
