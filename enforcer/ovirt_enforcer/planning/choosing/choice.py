"""What every strategy answers: which VMs end where, how good that is, and what was proven of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ovirt_enforcer.planning.deadline import Deadline
from ovirt_enforcer.planning.problem.problem import Problem
from ovirt_enforcer.planning.problem.score import Score


@dataclass(frozen=True, slots=True)
class Choice:
    """An end that keeps every hard rule that holds at the start and fits on every host."""

    #: VMs that end elsewhere than they start, with their hosts.
    where: Mapping[str, str]
    score: Score
    #: No end is better than this, as far as is proven; equal to `score` where this one is the best. It says
    #: nothing of the way there.
    bound: Score


class Strategy(Protocol):
    """One way to choose."""

    #: As the configuration names it.
    name: str

    def choose(self, problem: Problem, deadline: Deadline) -> Choice:
        """The best end found before the deadline; at worst the start itself."""
        ...
