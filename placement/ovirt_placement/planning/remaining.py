"""What a plan leaves violated and what stands in the way of its repair; what it costs HA reservations."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ovirt_placement.lookups import once_per_snapshot
from ovirt_placement.model import Host, Snapshot
from ovirt_placement.planning.plan import Deadline, Obstacle, ObstacleKind, Remaining, Step
from ovirt_placement.planning.problem.build_problem import vetoes
from ovirt_placement.planning.problem.problem import Goal, Problem
from ovirt_placement.planning.reservation import failing
from ovirt_placement.planning.steps import Frozen, apply, why_staying
from ovirt_placement.planning.strategies import OPTIMAL_IS_THERE
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.elements.resources import required_mb
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind
from ovirt_placement.rules.failover.check import name_lost
from ovirt_placement.rules.failover.outcomes import Domain, Loss
from ovirt_placement.rules.rule_list import ENGINES_OWN

if TYPE_CHECKING:
    from ovirt_placement.planning.solver.core import Element

_NOT_UP = ReasonKind("host_not_up", "the host has status {status}", veto=True)

#: VMs and hosts that are asked about.
_MOST_VMS = 8
_MOST_HOSTS = 12


def _refusals(
    snapshot: Snapshot, problem: Problem, goal: Goal, free: Collection[str], deadline: Deadline
) -> Iterator[Obstacle]:
    """Why hosts refuse those VMs that may move, as far as there is time to ask them.

    Of a positive group: the hosts of its peers, and other hosts all together; else any host each VM.
    """
    offenders = goal.constraint.offenders(SnapshotPlacement(snapshot))
    vms = [vm for vm in sorted(offenders) if vm in free][:_MOST_VMS]
    gathers = goal.gathers
    there = {problem.where[vm] for vm in goal.vms}
    asked = sorted(snapshot.hosts_of_cluster.get(problem.cluster, ()), key=lambda one: (-one.free_mb, one.id))
    fitting = [host for host in asked if goal.allows(host.id) and (not gathers or host.id in there)]
    questions: list[tuple[tuple[str, ...], Host]] = [
        ((vm,), host) for vm in vms for host in fitting[:_MOST_HOSTS] if host.id != problem.where[vm]
    ]
    if gathers and goal.hard and vms:
        others = [host for host in asked if host.id not in there]
        questions += [(goal.vms, host) for host in others[:_MOST_HOSTS]]
    for asking, host in questions:
        if deadline.over:
            return
        yield from _why_not(snapshot, asking, host)


def _why_not(snapshot: Snapshot, vms: tuple[str, ...], host: Host) -> Iterator[Obstacle]:
    together = len(vms) > 1
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
    return tuple(
        Remaining(
            groups=goal.constraint.groups,
            family=goal.constraint.family,
            asks=goal.constraint.asks,
            hard=goal.hard,
            vms=goal.vms,
            obstacles=tuple(dict.fromkeys(_obstacles(end, goal, deadline))) if goal in reported else (),
        )
        for goal in violated
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
    left_out = tuple(vm for vm in goal.vms if vm in end.left_out)
    if blocking is not None:
        yield from (_obstacle(end, goal, element) for element in blocking)
        if not blocking:
            yield _by_itself(end.problem, goal)
    if (lost := end.harm) is not None and left_out:
        yield Obstacle(
            ObstacleKind.RESERVATION,
            left_out,
            lost.hosts,
            unplaced=lost.vms,
            needed=lost.then,
            available=lost.now,
        )
    elif blocking is None and end.proven:
        yield Obstacle(ObstacleKind.NO_SEQUENCE if goal.hard else ObstacleKind.OUTWEIGHED)
    elif blocking is None:
        yield Obstacle(ObstacleKind.NOT_FOUND)
    staying = {vm: why for vm in goal.vms if (why := end.stays(vm)) is not None}
    yield from staying.values()
    if not deadline.over:
        free = [vm for vm in goal.vms if vm not in staying]
        yield from _refusals(end.snapshot, end.problem, goal, free, deadline)


def _partly_repaired(end: End, goal: Goal) -> Iterator[Obstacle]:
    """By how much a rule remains violated, and was before; and how much of what was above limits is not now.

    Of what is limited in sum in any case; of other rules where the plan has brought them nearer.
    """
    problems = (end.start or end.problem, end.problem)
    before, now = (_faults(problem, goal) for problem in problems)
    if goal.sum is not None:
        exceeded, left = (
            sum(one.sum is not None and one.wanted and not one.satisfied for one in problem.goals)
            for problem in problems
        )
        most, repaired = goal.sum.most, exceeded - left
        yield Obstacle(
            ObstacleKind.ABOVE, needed=now, available=most, count=exceeded, repaired=repaired, before=before
        )
    elif goal.partly and now < before:
        full, left = (_places_above(problem, goal) for problem in problems)
        yield Obstacle(ObstacleKind.NEARER, needed=now, before=before, count=full, repaired=full - left)


def _faults(problem: Problem, goal: Goal) -> int:
    """How far the same rule is from being satisfied in a problem of the cluster."""
    rule = (goal.constraint.family, goal.constraint.groups, goal.vms)
    alike = (one for one in problem.goals if (one.constraint.family, one.constraint.groups, one.vms) == rule)
    count = problem.start_count(next(alike, goal))
    return 0 if count is None else count.faults


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
    return goal.limit.places_needed(goal.vms) if goal.limit is not None else 0


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
        asks = element.goal.constraint.asks + ("" if element.goal.hard else ", which counts no less")
        return Obstacle(ObstacleKind.RULE, shared, groups=element.ids, asks=asks)
    first = element.ids[0]
    if element.kind is ObstacleKind.STAYS:
        return end.stays(first) or Obstacle(ObstacleKind.STAYS, (first,))
    if element.kind is ObstacleKind.TARGETS:
        return Obstacle(ObstacleKind.TARGETS, (first,), tuple(sorted(end.problem.targets[first])))
    return Obstacle(ObstacleKind.MEMORY, hosts=(first,), available=end.problem.free_mb[first])


# -- What a plan makes worse when hosts fail.
#: Steps of the check; what it leaves open counts as survived.
_BUDGET = 200_000

#: VMs that find no home, by the hosts that fail.
Unplaced = Mapping[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Harm:
    """What a plan would make worse, by the failure that it makes worst."""

    #: What fails together, and highly available VMs that find no home then, and do now.
    hosts: tuple[str, ...]
    domains: tuple[str, ...]
    vms: tuple[str, ...]
    #: How many VMs find no home at the end of the plan, and now, in sum over all failures of as many hosts.
    then: int
    now: int


def harm(snapshot: Snapshot, end: Snapshot, cluster: str, domains: tuple[Domain, ...]) -> Harm | None:
    """What fails less well at the end of a plan than now; None if nothing does, or nothing is reserved.

    Failures of fewer hosts weigh more than all of more hosts, which are listed without them alone, and those
    of domains least.
    """
    reserved = snapshot.cluster_by_id[cluster].ha_reservation
    if end is snapshot or not reserved or not any(vm.ha and vm.cluster == cluster for vm in snapshot.vms):
        return None
    return _compared(_losses(snapshot, cluster, domains), _losses(end, cluster, domains))


@once_per_snapshot
def _losses(snapshot: Snapshot, cluster: str, domains: tuple[Domain, ...]) -> tuple[Loss, ...]:
    """As `ha-check` says it."""
    judged = failing(snapshot, cluster, domains, _BUDGET)
    return tuple(name_lost(judged.measure, judged.losses))


def _compared(*lost: Sequence[Loss]) -> Harm | None:
    for size in sorted({_size(loss) for losses in lost for loss in losses}):
        before, after = (
            {loss.hosts: loss.unplaced for loss in losses if _size(loss) == size} for losses in lost
        )
        now, then = (sum(map(len, vms.values())) for vms in (before, after))
        if len(after) > len(before) or then > now:
            hosts, vms = made_worst(before, after)
            failed = next(loss.domains for loss in lost[1] if loss.hosts == hosts and _size(loss) == size)
            return Harm(hosts, failed, vms, then, now)
        if (len(before), now) != (len(after), then):
            return None
    return None


def _size(loss: Loss) -> tuple[int, int]:
    """How many domains fail, or how many hosts."""
    return len(loss.domains), 0 if loss.domains else len(loss.hosts)


def avoidable_harm(
    snapshot: Snapshot, steps: Sequence[Step], end: Snapshot, cluster: str, domains: tuple[Domain, ...]
) -> Harm | None:
    """The same but for what the rules that are repaired cost by themselves.

    That is what would be lost no more than now if these rules did not keep VMs from restarting: every
    placement that satisfies them costs it. A group of as many VMs as there are hosts is the usual case.
    """
    repaired = {group for step in steps for group in step.repairs}
    found = harm(snapshot, end, cluster, domains)
    return found and harm(without_rules(snapshot, repaired), without_rules(end, repaired), cluster, domains)


def safe_part(
    snapshot: Snapshot, steps: Sequence[Step], cluster: str, domains: tuple[Domain, ...], deadline: Deadline
) -> tuple[tuple[Step, ...], Snapshot]:
    """Steps, from the first, that do no avoidable harm, and their end; the last repairs something.

    As many as that, where further steps do no less harm and there is time: in a large cluster each look
    takes long.
    """
    ends = list(accumulate(steps, apply, initial=snapshot))
    counts = [count for count, step in enumerate(steps, 1) if step.repairs]

    def is_harmful(count: int) -> bool:
        return deadline.over or bool(avoidable_harm(snapshot, steps[:count], ends[count], cluster, domains))

    safe = bisect_left(counts, True, key=is_harmful)
    count = counts[safe - 1] if safe else 0
    return tuple(steps[:count]), ends[count]


def without_rules(snapshot: Snapshot, rules: Collection[str]) -> Snapshot:
    """The state without some rules; a label that is one by itself still brings its members into groups."""
    labels = (replace(one, implicit=False) if one.id in rules else one for one in snapshot.affinity_labels)
    return replace(
        snapshot,
        affinity_groups=tuple(one for one in snapshot.affinity_groups if one.id not in rules),
        affinity_labels=tuple(labels),
        placement_rules=tuple(one for one in snapshot.placement_rules if one.id not in rules),
    )


def made_worst(now: Unplaced, then: Unplaced) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The failure that becomes worse by most VMs, and these."""
    fresh = {
        hosts: tuple(vm for vm in vms if vm not in now.get(hosts, ())) or vms for hosts, vms in then.items()
    }
    return max(fresh.items(), key=lambda one: len(then[one[0]]) - len(now.get(one[0], ())))
