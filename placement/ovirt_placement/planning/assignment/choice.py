"""What every strategy answers: which VMs end where, how good that is, and what was proven of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.problem.score import Score

#: Ends besides the best that are worth the time it takes to find ways to them.
MOST_OTHERS = 8


@dataclass(frozen=True, slots=True)
class StrategyChoice:
    """An end that satisfies every hard rule that is satisfied at the start and fits on every host."""

    #: VMs that end elsewhere than they start, with their hosts.
    where: Mapping[str, str]
    score: Score
    #: No end is better than this, as far as is proven; equal to `score` where this one is the best. It says
    #: nothing of the way there.
    bound: Score
    #: Ends that were found before it and are hardly worse, the best first: the way to one may be shorter.
    #: Not more than `MOST_OTHERS`.
    others: tuple[Mapping[str, str], ...] = ()
    #: Makes another end better, as far as the strategy knows how, given its VMs that are elsewhere than at
    #: the start; what it has tried is not tried again. None where the strategy knows nothing more.
    further: Callable[[Mapping[str, str], Deadline], Mapping[str, str]] | None = None

    def bounded(self, migrations: int) -> StrategyChoice:
        """The same, where no end has fewer migrations than this many."""
        return replace(self, bound=self.bound._replace(migrations=migrations))


#: The fewest legal moves to the best that any reach, where a problem is so small that all can be tried; else
#: None. The numbers are what no end is better than, but for migrations.
Shortest = Callable[[Problem, Sequence[int], Deadline], tuple[Move, ...] | None]


class Strategy(Protocol):
    """One way to choose."""

    #: As the configuration names it.
    name: str
    #: Whether a plan goes on where its first choice has led, until nothing is repaired any more.
    goes_on: bool
    #: What its dice were cast with; None where it draws nothing.
    seed: int | None
    #: One that plans first, if any does: no plan is worse than the one that it makes alone.
    simple: Strategy | None
    #: None where it does not know how.
    shortest: Shortest | None

    def choose(
        self, problem: Problem, deadline: Deadline, known: StrategyChoice | None = None
    ) -> StrategyChoice:
        """The best end found before the deadline; at worst the start itself. `known` is a simpler choice."""
        ...
