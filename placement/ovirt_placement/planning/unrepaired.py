"""What stays broken after a plan, of every family, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import group_name, host_name, vm_name
from ovirt_placement.planning.assignment.catalogue import OPTIMAL_IS_THERE
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.explain.elements import Element, Kind
from ovirt_placement.planning.explain.refusals import refusals
from ovirt_placement.planning.plan import Remaining
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.rules.mobility import why_immovable

#: Rules that are explained by what blocks them; of more, only what refuses their VMs is told.
_MOST_EXPLAINED = 20


@dataclass(frozen=True, slots=True)
class End:
    """What a plan leads to, posed anew, and whether all other plans were ruled out."""

    snapshot: Snapshot
    problem: Problem
    frozen: Mapping[str, str] | Collection[str]
    proven: bool
    #: VMs of which moves were left out that would have made it worse what happens when hosts fail.
    harmful: Collection[str] = ()

    def why_stays(self, vm: str) -> str | None:
        """Why a VM is not moved, wherever to; None if it may be."""
        if vm in self.frozen:
            return self.frozen[vm] if isinstance(self.frozen, Mapping) else "it is left alone for now"
        return why_immovable(self.snapshot, self.snapshot.vm_by_id[vm])


def remains(end: End, deadline: Deadline, *, explained: bool = True) -> tuple[Remaining, ...]:
    """Every violation; nobody explains what nobody was asked to repair, or anything if not `explained`."""
    broken = [goal for goal in end.problem.goals if not goal.held]
    told = [goal for goal in broken if goal.wanted][:_MOST_EXPLAINED] if explained else []
    return tuple(_remaining(end, goal, deadline, explained=goal in told) for goal in broken)


def _remaining(end: End, goal: Goal, deadline: Deadline, *, explained: bool) -> Remaining:
    constraint = goal.constraint
    return Remaining(
        groups=constraint.groups,
        family=constraint.family,
        asks=constraint.asks,
        hard=goal.hard,
        vms=goal.vms,
        because=tuple(dict.fromkeys(_because(end, goal, deadline))) if explained else (),
    )


def _because(end: End, goal: Goal, deadline: Deadline) -> Iterator[str]:
    blocking: tuple[Element, ...] | None = None
    if _too_many(end.problem, goal):
        blocking = ()
    elif OPTIMAL_IS_THERE and not deadline.over:
        # Only here, so that all else works without OR-Tools.
        from ovirt_placement.planning.explain.core import core

        blocking = core(end.problem, goal, deadline)
    if blocking is not None:
        yield from (_sentence(end, goal, element) for element in blocking)
        if not blocking:
            yield _by_itself(end.problem, goal)
    elif any(vm in end.harmful for vm in goal.vms):
        yield "migrations of its VMs were left out: with them, HA VMs would find no home if hosts failed"
    elif end.proven:
        yield "no sequence of legal migrations repairs it"
    else:
        yield "no sequence of legal migrations that repairs it was found; not all could be tried"
    for vm in goal.vms:
        if why := end.why_stays(vm):
            yield f"{vm_name(vm, end.snapshot)} stays where it is: {why}"
    free = [vm for vm in goal.vms if end.why_stays(vm) is None]
    yield from refusals(end.snapshot, end.problem, goal, free)


def _places(problem: Problem, goal: Goal) -> int:
    """How many places its VMs can be on: hosts that are up, and those that they are on, or their domains."""
    hosts = {*problem.hosts, *(problem.where[vm] for vm in goal.vms)}
    return len(hosts) if goal.limit is None else len({*map(goal.limit.place, hosts)})


def _needs(goal: Goal) -> int:
    """How many places a rule needs that limits its VMs; else none."""
    return -(-len(goal.limit.sets(goal.vms)) // goal.limit.most) if goal.limit is not None else 0


def _too_many(problem: Problem, goal: Goal) -> bool:
    return _needs(goal) > _places(problem, goal)


def _by_itself(problem: Problem, goal: Goal) -> str:
    """Why a rule cannot hold, though nothing stands against it but the hosts that there are."""
    if goal.limit is None:
        return "no host that is up would do for it"
    count = _places(problem, goal)
    if goal.limit.most == 1 and not goal.limit.set_of:
        return f"its {len(goal.vms)} running VMs need a host each, and only {count} can have one"
    return f"its {len(goal.vms)} running VMs need {_needs(goal)} places, and there are only {count}"


def _sentence(end: End, goal: Goal, element: Element) -> str:
    snapshot = end.snapshot
    if element.goal is not None:
        names = " and ".join(group_name(group, snapshot) for group in element.ids)
        shared = [vm for vm in element.goal.vms if vm in goal.vms] or element.goal.vms
        of_groups = f" ({names})" if names else ""
        return f"{_vms(shared, snapshot)} must also run {element.goal.constraint.asks}{of_groups}"
    first = element.ids[0]
    if element.kind is Kind.STAYS:
        why = end.why_stays(first) or "no host lets it in"
        return f"{vm_name(first, snapshot)} stays where it is: {why}"
    if element.kind is Kind.TARGETS:
        hosts = ", ".join(sorted(host_name(host, snapshot) for host in end.problem.targets[first]))
        return f"{vm_name(first, snapshot)} may only go to {hosts}"
    return f"{host_name(first, snapshot)} has {end.problem.free_mb[first]} MiB free"


def _vms(vms: Collection[str], snapshot: Snapshot) -> str:
    names = [vm_name(vm, snapshot) for vm in vms]
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
