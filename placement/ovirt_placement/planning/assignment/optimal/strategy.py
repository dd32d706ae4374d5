"""The optimal strategy: part by part, then what does not reach its bound together, as long as time lasts."""

from __future__ import annotations

from ovirt_placement.planning.assignment.choice import MOST_OTHERS, Route, Strategy, StrategyChoice
from ovirt_placement.planning.assignment.greedy.strategy import Greedy
from ovirt_placement.planning.assignment.optimal.construction import Construction
from ovirt_placement.planning.assignment.optimal.improvement import Improvement
from ovirt_placement.planning.assignment.optimal.joint import Joint
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.exhaustive.search import shortest
from ovirt_placement.planning.lower_bound import bound
from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.problem.score import Score, score
from ovirt_placement.planning.value import Value, value_of

#: With more places to choose from the greedy strategy goes first; and the share of the time that it gets.
_SMALL = 2_000
_GREEDY_SHARE = 0.3
#: The share of the time in which every part gets its first end.
_FIRST_SHARE = 0.6
#: The share of the time in which straight moves to an end as good as the bound are looked for.
_REACHING_SHARE = 0.75


class Optimal:
    """CP-SAT: exact where its time suffices, and it says so; else the best found, with a bound."""

    name = "optimal"
    goes_on = True
    seed: int | None = None
    other: Strategy | None = Greedy()

    def choose(self, problem: Problem, deadline: Deadline) -> StrategyChoice:
        candidates = CandidateHosts(problem)
        known = self._start(problem, candidates, deadline)
        if known is not None and value_of(known.score) <= value_of(known.bound):
            return known
        construction = Construction(problem, candidates, {} if known is None else known.where)
        construction.run(deadline.within(_FIRST_SHARE))
        improvement = Improvement(construction)
        improvement.run(deadline)
        where = improvement.where
        reached = score(construction.placement)
        least = _least(improvement.bound, reached)
        if any(goal.opaque for goal in problem.goals):
            least = bound(problem)  # no model knows what such a rule costs, nor may its VMs move in one
        if known is not None and value_of(known.score) < value_of(reached):
            others = (where, *known.others)[:MOST_OTHERS]
            return StrategyChoice(known.where, known.score, least, others, improvement.run_from)
        others = () if known is None else (known.where, *known.others)[:MOST_OTHERS]
        return StrategyChoice(where, reached, least, others, improvement.run_from)

    def _start(
        self, problem: Problem, candidates: CandidateHosts, deadline: Deadline
    ) -> StrategyChoice | None:
        """What the greedy strategy chooses; None where the problem is small enough to do without."""
        places = sum(len(candidates.of(vm)) for vm in problem.memory_mb)
        return Greedy().choose(problem, deadline.within(_GREEDY_SHARE)) if places > _SMALL else None

    def route(
        self, problem: Problem, choice: StrategyChoice, worth: Value, deadline: Deadline
    ) -> Route | None:
        """For good where the problem is small; else straight to an end as good as the bound, or nearly so."""
        moves = shortest(problem, value_of(choice.bound)[:-1], deadline)
        if moves is not None:
            return Route(moves, proven=True)
        reached = worth <= value_of(choice.score)
        if reached or any(goal.opaque for goal in problem.goals):
            return None
        joint = Joint(problem, choice.where)
        moves = joint.reach(deadline.within(_REACHING_SHARE))
        if moves is None:
            moves = joint.best(deadline)
        return None if moves is None else Route(moves, proven=False)


def _least(value: Value, reached: Score) -> Score:
    """A score of this value, with the deficit of headroom as it was reached."""
    hard, headroom_deficit, *soft, pairs, migrations = value
    return Score(
        hard=hard,
        headroom_deficit_mb=min(headroom_deficit, reached.headroom_deficit_mb),
        headroom_deficit_cpu=max(0, headroom_deficit - reached.headroom_deficit_mb),
        soft=tuple(soft),
        pairs=pairs,
        migrations=migrations,
        memory_mb=0,
        fullest=0,
    )
