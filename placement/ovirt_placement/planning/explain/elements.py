"""What might block a goal: limits of hosts, targets that are left, VMs that stay, and other rules.

Apart from who asks which of them do, since that takes OR-Tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from ovirt_placement.planning.problem.problem import Goal, Problem


class ElementKind(Enum):
    """In the order in which pieces are dropped, if either of two would do: first what matters less."""

    ROOM = auto()
    TARGETS = auto()
    STAYS = auto()
    RULE = auto()


@dataclass(frozen=True, slots=True)
class Element:
    """A limit of a host, the hosts that filters leave a VM, a VM that stays, or a rule."""

    kind: ElementKind
    #: The host or the VM, or the groups of the rule.
    ids: tuple[str, ...]
    goal: Goal | None = None


def elements(problem: Problem, goal: Goal, vms: tuple[str, ...]) -> Iterator[Element]:
    """Whatever might block a goal, as far as these VMs are concerned."""
    for host in problem.hosts:
        yield Element(ElementKind.ROOM, (host,))
    for vm in vms:
        if not problem.targets[vm]:
            yield Element(ElementKind.STAYS, (vm,))
        elif not problem.targets[vm].issuperset(problem.hosts):
            yield Element(ElementKind.TARGETS, (vm,))
    seen = {goal.number}
    for vm in vms:
        for other in problem.goals_of.get(vm, ()):
            if other.hard and other.number not in seen and other.form is not None:
                seen.add(other.number)
                yield Element(ElementKind.RULE, other.constraint.groups, other)


def concerned(problem: Problem, goal: Goal, most: int) -> tuple[str, ...]:
    """The members of a goal and those that hard rules tie to them, at most this many."""
    found: Mapping[str, None] = dict.fromkeys(goal.vms)
    waiting = list(found)
    known = dict(found)
    while waiting and len(known) < most:
        for other in problem.goals_of.get(waiting.pop(0), ()):
            fresh = [vm for vm in other.vms if vm not in known] if other.hard else []
            known.update(dict.fromkeys(fresh))
            waiting.extend(fresh)
    return tuple(known)
