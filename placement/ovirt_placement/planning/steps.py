"""Steps of a plan: each held against all rules where the steps before it lead to, and when each runs."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.lookups import share
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.planning.dependencies import waits
from ovirt_placement.planning.plan import (
    ALWAYS_CHECKED,
    NEVER,
    Deadline,
    Obstacle,
    ObstacleKind,
    Plan,
    RefusedStep,
    Step,
    StepPurpose,
)
from ovirt_placement.planning.problem.build_problem import filters_of, legal, vetoes
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.rules.catalogue import find_violations, violated_groups
from ovirt_placement.rules.elements.placement import World, why_immovable
from ovirt_placement.rules.elements.rule import Scope
from ovirt_placement.rules.failover.restart_check import part_of

#: Of VMs with more peers the whole state is looked at: next to nothing of it would be left out.
_MOST_PEERS = 100


class Following:
    """Where filters look at the whole cluster, or VMs have many peers, that is the whole state."""

    def __init__(self, snapshot: Snapshot, cluster: str) -> None:
        self._start = snapshot
        depend = [rule.depends_on for rule in filters_of(snapshot, cluster)]
        self._nearby = all(
            one.fixed_in(snapshot, cluster) or one.scope_in(snapshot, cluster) is not Scope.CLUSTER
            for one in depend
        )
        #: What has changed since the start.
        self._vms: dict[str, Vm] = {}
        self._hosts: dict[str, Host] = {}
        #: VMs that have come to a host since the start; some may have left it again.
        self._came: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def follow_step(self, step: Step) -> bool:
        """Go on by a step, if all rules let it pass."""
        nearby = self._nearby and self._peers(step) <= _MOST_PEERS
        before = self._vicinity(step) if nearby else self.state()
        if not legal(before, step):
            return False
        after = World(before).moved(step.vms, step.target).snapshot
        for host in (*step.sources, step.target):
            if host in after.host_by_id:
                self._hosts[host] = after.host_by_id[host]
        for vm in step.vms:
            self._vms[vm] = after.vm_by_id[vm]
            self._came[step.target][vm] = None
        if not nearby:
            self._start, self._vms, self._hosts = after, {}, {}
            self._came.clear()
        return True

    def state(self) -> Snapshot:
        """The whole state by now."""
        return self._with_changes(self._start) if self._vms else self._start

    def _peers(self, step: Step) -> int:
        """How many VMs share a group with those that move, at most."""
        start = self._start
        groups = {group.id for vm in step.vms for group in start.groups_of_vm.get(vm, ())}
        return sum(len(start.group_vms[group]) for group in groups)

    def _vicinity(self, step: Step) -> Snapshot:
        known = self._start.host_by_id
        hosts = frozenset(host for host in (*step.sources, step.target) if host in known)
        came = dict.fromkeys(vm for host in hosts for vm in self._came[host])
        vms = [vm for vm in (*step.vms, *came) if vm in self._start.vm_by_id]
        return self._with_changes(part_of(self._start, vms, hosts))

    def _with_changes(self, part: Snapshot) -> Snapshot:
        after = replace(
            part,
            vms=tuple(self._vms.get(vm.id, vm) for vm in part.vms),
            hosts=tuple(self._hosts.get(host.id, host) for host in part.hosts),
        )
        share(after, part)
        return after


#: MiB per second that a host sends or receives, shared by the migrations that it makes at once: a network of
#: 1 Gbit/s, less what its frames take. The engine does not report it; this is a cautious assumption.
_HOST_MB_PER_SECOND = 112.0
#: Migrations that share it, from and to each host: as many as hosts make at once under most of the engine's
#: migration policies.
_AT_ONCE = 2
#: What each takes besides: scheduling, the target's preparations, and until the engine has noticed.
_OVERHEAD_SECONDS = 10.0


def step_seconds(vms: Iterable[Vm]) -> float:
    """The seconds that VMs take to leave a host for another by one request, a few at once."""
    bandwidth = _HOST_MB_PER_SECOND / _AT_ONCE
    each = [_OVERHEAD_SECONDS + _in_use_mb(vm) / bandwidth for vm in vms]
    return max(max(each), sum(each) / _AT_ONCE)


def _in_use_mb(vm: Vm) -> float:
    """All of it, where it is not known."""
    percent = 100.0 if vm.usage_mem_percent is None else vm.usage_mem_percent
    return vm.memory_mb * percent / 100.0


#: A direction and a host.
_Place = tuple[str, str]


def plan_seconds(steps: Sequence[Step]) -> float:
    """How long steps take together."""
    return max((end for _, end in schedule(steps)), default=0.0)


def schedule(steps: Sequence[Step]) -> list[tuple[float, float]]:
    """When each step begins and ends, in seconds from the beginning of the first.

    List scheduling: whenever a migration may begin, the most urgent one that may does. A step of more VMs
    than a host moves at once runs when the host moves nothing else.
    """
    followers: list[list[int]] = [[] for _ in steps]
    for at, step in enumerate(steps):
        for before in step.after:
            followers[before].append(at)
    urgent = _urgencies(steps, followers)
    needs = [dict.fromkeys(_places(step), _weight(step)) for step in steps]
    waiting_for = [len(step.after) for step in steps]
    spans = [(0.0, 0.0)] * len(steps)
    running: Counter[_Place] = Counter()
    open_steps = {at for at, count in enumerate(waiting_for) if not count}
    hopeful = set(open_steps)
    under_way: list[tuple[float, int]] = []
    now = 0.0
    while open_steps or under_way:
        for at in sorted(hopeful, key=lambda at: urgent[at]):
            if all(running[place] + weight <= _AT_ONCE for place, weight in needs[at].items()):
                open_steps.remove(at)
                running.update(needs[at])
                spans[at] = now, now + steps[at].seconds
                heappush(under_way, (spans[at][1], at))
        now, ended = heappop(under_way)
        running.subtract(needs[ended])
        # No other that is open may begin now if it could not before.
        hopeful = {at for at in open_steps if not needs[ended].keys().isdisjoint(needs[at])}
        for follower in followers[ended]:
            waiting_for[follower] -= 1
            if not waiting_for[follower]:
                hopeful.add(follower)
        open_steps |= hopeful
    return spans


def _urgencies(steps: Sequence[Step], followers: Sequence[Sequence[int]]) -> list[tuple[float, float, int]]:
    """The less, the more urgent: steps that a long row follows, or that a busy host is to make."""
    loads: defaultdict[_Place, float] = defaultdict(float)
    for step in steps:
        for place in _places(step):
            loads[place] += step.seconds * _weight(step) / _AT_ONCE
    remaining = [0.0] * len(steps)
    for at in reversed(range(len(steps))):
        row = steps[at].seconds + max((remaining[follower] for follower in followers[at]), default=0.0)
        remaining[at] = max(row, *(loads[place] for place in _places(steps[at])))
    return [(-remaining[at], -step.seconds, at) for at, step in enumerate(steps)]


def _places(step: Step) -> set[_Place]:
    """Where a step counts."""
    return {("into", step.target), *(("out", source) for source in step.sources)}


def _weight(step: Step) -> int:
    """How many migrations it counts for: those of a group that moves at once queue on their host."""
    return min(len(step.sources), _AT_ONCE)


#: Which VMs are to be left alone for now: with the reason of each, where it is known.
Frozen = Mapping[str, str] | Collection[str]


def why_staying(snapshot: Snapshot, vm: Vm, frozen: Frozen) -> Obstacle | None:
    """Why a VM is not moved, wherever to; None if it may be."""
    if vm.id in frozen:
        words = frozen[vm.id] if isinstance(frozen, Mapping) else "it is left alone for now"
        return Obstacle(ObstacleKind.STAYS, (vm.id,), words=words)
    why = why_immovable(snapshot, vm)
    return None if why is None else Obstacle(ObstacleKind.STAYS, (vm.id,), reasons=(why,))


class Certified(NamedTuple):
    """Steps that the rules let pass, one after the other, the state after them, and the first one refused."""

    steps: tuple[Step, ...]
    end: Snapshot
    refused: Step | None
    #: Whether none was refused, and all were looked at.
    whole: bool


def certify(
    snapshot: Snapshot, problem: Problem, moves: Sequence[Move], deadline: Deadline = NEVER
) -> Certified:
    """Legal moves as steps, as far as all rules let them pass, and as there is time to ask them."""
    steps: list[Step] = []
    placement, state = ProblemPlacement(problem), Following(snapshot, problem.cluster)
    for move, after in zip(moves, waits(problem, moves), strict=True):
        if len(steps) >= ALWAYS_CHECKED and deadline.over:
            return Certified(tuple(steps), state.state(), None, whole=False)
        bare = _step(placement, move, after)
        step = replace(bare, seconds=step_seconds(snapshot.vm_by_id[vm] for vm in bare.vms))
        if not state.follow_step(step):
            return Certified(tuple(steps), state.state(), step, whole=False)
        steps.append(step)
    return Certified(tuple(steps), state.state(), None, whole=True)


def moves_of(steps: Iterable[Step]) -> list[Move]:
    """The moves that steps are."""
    return [Move(step.vms, step.target) for step in steps]


def apply(snapshot: Snapshot, step: Step) -> Snapshot:
    """The snapshot as it is once a step has succeeded."""
    return World(snapshot).moved(step.vms, step.target).snapshot


def end_of(snapshot: Snapshot, steps: Iterable[Step]) -> Snapshot:
    """The snapshot as it is once all steps have succeeded, made once and not for each of them."""
    moves = ((vm, step.target) for step in steps for vm in step.vms)
    return World(snapshot).migrated_in_turn(moves).snapshot


def refusal(snapshot: Snapshot, cluster: str, step: Step) -> dict[tuple[str, str], RefusedStep]:
    """A step that the rules refuse in this state, by each VM and host that is not to be tried again."""
    found = tuple((rule.name, reason) for rule, reason in vetoes(snapshot, cluster, step.vms, step.target))
    return dict.fromkeys(((vm, step.target) for vm in step.vms), RefusedStep(step=step, vetoes=found))


def _step(placement: ProblemPlacement, move: Move, after: tuple[int, ...]) -> Step:
    """The move as a step that waits for others; the placement goes along."""
    vms = tuple(sorted(move.vms))  # in whatever order the engine listed them
    sources = tuple(placement.where(vm) for vm in vms)
    before = dict.fromkeys(_violated_ids(placement, move))
    purpose = _purpose(placement, move)
    placement.move(move.vms, move.host)
    left = set(_violated_ids(placement, move))
    return Step(
        vms=vms,
        sources=sources,
        target=move.host,
        groups=tuple(before),
        repairs=tuple(group for group in before if group not in left),
        after=after,
        purpose=purpose,
    )


def _purpose(placement: ProblemPlacement, move: Move) -> StepPurpose:
    problem = placement.problem
    for vm in move.vms:
        for goal in problem.goals_of.get(vm, ()):
            if not goal.constraint.groups and placement.violated(goal) and goal.allows(move.host):
                return StepPurpose(goal.constraint.family)
    if all(problem.where[vm] == move.host for vm in move.vms):
        return StepPurpose.BACK
    return StepPurpose.ON if all(vm in placement.moved for vm in move.vms) else StepPurpose.ROOM


def _violated_ids(placement: ProblemPlacement, move: Move) -> Iterator[str]:
    """Groups of violated rules that any of the VMs belongs to."""
    for vm in move.vms:
        for goal in placement.problem.goals_of.get(vm, ()):
            if placement.violated(goal):
                yield from goal.constraint.groups


class Misfit(NamedTuple):
    """Why a plan must not be carried out any more."""

    obstacle: Obstacle
    #: The number of the step, from 1, that it concerns; None if it is about the plan as a whole.
    step: int | None = None


def misfit(snapshot: Snapshot, plan: Plan) -> Misfit | None:
    """Why a plan must not be carried out now; None if it may.

    Every step must begin where its VMs are, be legal in its turn and repair what is violated until then, and
    in the end the very rules must be violated that the plan said: where rules were changed since, others are.
    """
    if plan.cluster not in snapshot.cluster_by_id:
        return Misfit(Obstacle(ObstacleKind.CLUSTER_GONE))
    state, violated = snapshot, violated_groups(snapshot, plan.cluster)
    for number, step in enumerate(plan.steps, 1):
        why = _why_not(state, step)
        # What only a step before it violates costs another look.
        fresh = frozenset(step.repairs) - violated
        if why is None and fresh and (repaired := fresh - violated_groups(state, plan.cluster)):
            why = Obstacle(ObstacleKind.RULES_CHANGED, groups=tuple(sorted(repaired)))
        if why is not None:
            return Misfit(why, number)
        state = apply(state, step)
    return _other_end(state, plan)


def _why_not(state: Snapshot, step: Step) -> Obstacle | None:
    for vm, source in zip(step.vms, step.sources, strict=True):
        known = state.vm_by_id.get(vm)
        if known is None:
            return Obstacle(ObstacleKind.VM_GONE, (vm,))
        if known.host != source:
            there = () if known.host is None else (known.host,)
            return Obstacle(ObstacleKind.ELSEWHERE, (vm,), (source, *there))
    if step.target not in state.host_by_id:
        return Obstacle(ObstacleKind.HOST_GONE, hosts=(step.target,))
    if legal(state, step):
        return None
    cluster = state.vm_by_id[step.vms[0]].cluster
    found = tuple(reason for _, reason in vetoes(state, cluster, step.vms, step.target))
    return Obstacle(ObstacleKind.REFUSED, step.vms, (step.target,), reasons=found)


def _other_end(end: Snapshot, plan: Plan) -> Misfit | None:
    said = {(rule.family, rule.groups, rule.hard) for rule in plan.remaining}
    found = {(one.constraint.family, one.groups, one.hard) for one in find_violations(end, plan.cluster)}
    if said == found:
        return None
    groups = sorted({group for _, groups, _ in said ^ found for group in groups})
    return Misfit(Obstacle(ObstacleKind.RULES_CHANGED, groups=tuple(groups)))
