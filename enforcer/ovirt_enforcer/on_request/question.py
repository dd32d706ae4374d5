"""What plans are made by: a cluster's state, what is wished for, and what is left alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.problem.build_problem import PlanOptions


def nothing_holds(plan: Plan) -> str | None:
    """Of a state file no gate is known."""
    return None


@dataclass(frozen=True, slots=True)
class Asked:
    """A cluster's state, what is wished for, and what is to be left alone with the reason."""

    snapshot: Snapshot
    options: PlanOptions
    #: Of a state file there are none.
    settings: EnforcerSettings | None = None
    frozen: Mapping[str, str] = field(default_factory=dict)
    spared: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[tuple[str, str], str] = field(default_factory=dict)
    #: Says of a plan why its first step would not be taken now; None if it would.
    not_now: Callable[[Plan], str | None] = nothing_holds
    #: What is left alone while hosts, by id, are emptied; None where that makes no difference.
    frozen_while_emptying: Callable[[Collection[str]], Mapping[str, str]] | None = None
