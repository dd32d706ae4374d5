"""What a step is for: the groups that it repairs, or those that it makes room for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ovirt_placement.planning.plan import Plan, Step

#: Why nothing is to be done for a group; None if something may.
WhyNot = Callable[[str], str | None]


def why_for_nothing(step: Step, plan: Plan | None, why_not: WhyNot) -> str | None:
    """Why a step is not to be taken, if some groups are not to be repaired.

    It is not taken if it repairs such a group itself. A step that only makes room is not taken if all that it
    makes room for is such.
    """
    own = step.repairs or step.groups
    if own:
        return _first(own, why_not)
    answers = [_first(later.repairs or later.groups, why_not) for later in _served(step, plan)]
    return next(iter(answers), None) if all(answer is not None for answer in answers) else None


def _first(groups: tuple[str, ...], why_not: WhyNot) -> str | None:
    return next((reason for group in groups if (reason := why_not(group)) is not None), None)


def _served(step: Step, plan: Plan | None) -> Iterator[Step]:
    """The steps that repair something and wait for this one, or for one that does."""
    if plan is None or step not in plan.steps:
        return
    reached = {plan.steps.index(step)}
    for place, later in enumerate(plan.steps):
        if not reached.isdisjoint(later.after):
            reached.add(place)
            if later.repairs or later.groups:
                yield later
