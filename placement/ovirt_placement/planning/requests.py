"""What is asked of a planner besides repair: the way back from a plan, and room for a VM to start."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_options
from itertools import islice
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import (
    NEVER,
    Deadline,
    Obstacle,
    ObstacleKind,
    Plan,
    Remaining,
    StepPurpose,
)
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.bound import BestFirst, Places, closures, places_after, put_at
from ovirt_placement.planning.problem.build_problem import (
    PlanOptions,
    asking,
    filters_of,
    pose,
    request_for,
    vetoes,
)
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.remaining import End, remains
from ovirt_placement.planning.steps import certify, end_of, why_staying
from ovirt_placement.planning.strategies import DEFAULT, StrategyName, strategy
from ovirt_placement.rules.catalogue import constraints, find_violations
from ovirt_placement.rules.doubts import doubt
from ovirt_placement.rules.elements.placement import World
from ovirt_placement.rules.elements.resources import handed_out_mb
from ovirt_placement.rules.elements.rule import (
    Allowed,
    AllowedHosts,
    AtMost,
    Constraint,
    Same,
    accepted_hosts,
)
from ovirt_placement.rules.elements.verdict import NOT_KNOWN_YET, Reason
from ovirt_placement.rules.failover.outcomes import Domain

#: The word for it where a plan names its strategy.
STRATEGY = "undo"


class Moved(NamedTuple):
    """A VM that a plan moved: the host where it began, and the one where the plan left it."""

    vm: str
    source: str
    target: str


class Home(AllowedHosts, frozen=True, kw_only=True):
    """A VM, and the host that it is to go back to; it may step aside on the way, also once it is there."""

    family: ClassVar[str] = StepPurpose.HOME
    asks: ClassVar[str] = "on its former host"

    @property
    def binding(self) -> bool:
        return False


class Undoing(NamedTuple):
    """The way back, and why VMs do not go it, by id."""

    plan: Plan
    kept: Mapping[str, tuple[Obstacle, ...]]


def plan_back(
    snapshot: Snapshot,
    cluster: str,
    moved: tuple[Moved, ...],
    frozen: Mapping[str, str],
    deadline: Deadline = NEVER,
    worse: Callable[[Snapshot], object] = lambda end: None,
    domains: tuple[Domain, ...] = (),
) -> Undoing:
    """The fewest moves that bring as many VMs as can be back to where they were, each one legal.

    No hard rule is violated at the end that is satisfied now: the VMs that would violate it stay. VMs in
    `frozen` do, too, with that as the reason, and those that were moved since; and all if the end is `worse`.
    """
    whys = {one.vm: _why_kept(snapshot, cluster, one, frozen) for one in moved}
    kept: dict[str, tuple[Obstacle, ...]] = {vm: (why,) for vm, why in whys.items() if why is not None}
    away = (one for one in moved if one.vm not in kept and snapshot.vm_by_id[one.vm].host != one.source)
    homes = {one.vm: one.source for one in away}
    while violated := _newly_violated(snapshot, cluster, homes):
        kept |= {vm: (violated[vm],) for vm in homes if vm in violated}
        homes = {vm: home for vm, home in homes.items() if vm not in violated}
    forms = {vm: Allowed(frozenset({host})) for vm, host in homes.items()}
    asked = (Home(groups=(), vms=(vm,), hard=True, priority=0.0, form=form) for vm, form in forms.items())
    options = with_options(asking(snapshot, cluster, asked), soft=False, domains=domains)
    # Most ways are straight, and known in an instant; only where some VM has none is more time spent.
    for name in dict.fromkeys((StrategyName.GREEDY, DEFAULT)):
        plan = make_plan(
            snapshot, cluster, frozen, options=options, strategy=strategy(name), deadline=deadline
        )
        staying = {vm: one.obstacles for one in plan.remaining if one.family == Home.family for vm in one.vms}
        if plan.proven or not staying:
            break
    kept |= staying
    end = end_of(snapshot, plan.steps)
    if plan.steps and worse(end):
        kept |= {vm: (Obstacle(ObstacleKind.NO_WAY_BACK),) for vm in homes if vm not in kept}
        plan, end = Plan(cluster=cluster, strategy=STRATEGY), snapshot
    left = pose(end, cluster, frozen, options=PlanOptions(repair=frozenset()))
    remaining = remains(End(end, left, frozen, plan.proven), deadline)
    return Undoing(replace(plan, strategy=STRATEGY, seed=None, remaining=remaining), kept)


def _why_kept(snapshot: Snapshot, cluster: str, moved: Moved, frozen: Mapping[str, str]) -> Obstacle | None:
    """Why a VM cannot go back, whatever the others do."""
    vm, home = snapshot.vm_by_id.get(moved.vm), snapshot.host_by_id.get(moved.source)
    if vm is None or vm.host is None or vm.cluster != cluster:
        return Obstacle(ObstacleKind.NOT_HERE, (moved.vm,))
    if vm.host == moved.source:
        return None
    if vm.host != moved.target:
        return Obstacle(ObstacleKind.ELSEWHERE, (vm.id,), (moved.target, vm.host))
    if home is None or not home.up:
        return Obstacle(ObstacleKind.HOME_DOWN, (vm.id,), (moved.source,))
    return why_staying(snapshot, vm, frozen)


def _newly_violated(snapshot: Snapshot, cluster: str, homes: Mapping[str, str]) -> dict[str, Obstacle]:
    """VMs whose way back would violate a hard rule that is satisfied now, with that as the reason."""
    now, then = (
        [((one.constraint.family, one.groups), one) for one in find_violations(state, cluster) if one.hard]
        for state in (snapshot, World(snapshot).migrated(homes).snapshot)
    )
    before = {rule for rule, _ in now}
    return {
        vm: Obstacle(ObstacleKind.VIOLATES, (vm,), groups=violation.groups)
        for rule, violation in then
        if rule not in before
        for vm in violation.constraint.vms
    }


def plan_home(
    snapshot: Snapshot,
    cluster: str,
    moved: tuple[Moved, ...],
    frozen: Mapping[str, str],
    deadline: Deadline,
    domains: tuple[Domain, ...] = (),
) -> Plan:
    """The way back as it is now: a plan, in which `remaining` has the VMs that stay, with the reason."""
    plan, kept = plan_back(snapshot, cluster, moved, frozen, deadline, domains=domains)
    staying = (
        Remaining(groups=(), family=Home.family, asks=Home.asks, hard=False, vms=(vm,), obstacles=why)
        for vm, why in kept.items()
    )
    return replace(plan, remaining=(*plan.remaining, *staying))


#: What stands in for the name of a strategy.
_NAME = "make-room"
#: Standings that are looked at.
_MOST = 4_000
#: A cluster with no more of these is searched as a whole.
_FEW_VMS = 12
_FEW_HOSTS = 6
#: In larger ones: hosts that are looked at, VMs that may leave each, and hosts that these may go to.
_NEAREST = 4
_LEAVING = 3
_SPARE = 3


@dataclass(frozen=True, slots=True)
class RoomPlan:
    """What it takes to start a VM."""

    vm: str
    #: Where it could start afterwards; None if nothing was found that lets it start.
    host: str | None
    plan: Plan
    #: Why each host refuses it as things are; none, if one takes it.
    refusals: tuple[tuple[str, tuple[Reason, ...]], ...] = ()


def make_room(snapshot: Snapshot, vm: str, deadline: Deadline = NEVER) -> RoomPlan:
    """The migrations after which some host passes every filter for the start of a VM that does not run.

    No satisfied hard rule is violated on the way.
    """
    cluster = snapshot.vm_by_id[vm].cluster
    if why := doubt(snapshot, cluster):
        late = (Reason(NOT_KNOWN_YET, status=why),)
        hosts = snapshot.hosts_of_cluster.get(cluster, ())
        plan = Plan(cluster=cluster, strategy=_NAME, proven=False)
        return RoomPlan(vm, None, plan, tuple((one.id, late) for one in hosts))
    problem = pose(snapshot, cluster, options=PlanOptions(repair=frozenset()))
    request = request_for(snapshot, cluster, (vm,), problem.hosts)
    if able := accepted_hosts(snapshot, filters_of(snapshot, cluster), request):
        return RoomPlan(vm, able[0], Plan(cluster=cluster, strategy=_NAME, proven=not problem.guessed))
    search = _RoomSearch(snapshot, problem, vm)
    moves, host, proven = search.run(deadline)
    plan = Plan(cluster=cluster, strategy=_NAME, proven=proven and not problem.guessed)
    if host is None:
        asked = ((one, vetoes(snapshot, cluster, (vm,), one)) for one in problem.hosts)
        refusals = tuple((one, tuple(reason for _, reason in found)) for one, found in asked)
        return RoomPlan(vm, None, plan, refusals)
    steps = certify(snapshot, problem, moves).steps
    return RoomPlan(vm, host, replace(plan, steps=steps, at_least=search.at_least))


class _RoomSearch:
    """Best-first: the migrations made, and those that the nearest host needs at least."""

    def __init__(self, snapshot: Snapshot, problem: Problem, vm: str) -> None:
        self._snapshot = snapshot
        self._problem = problem
        self._vm = vm
        self._placement = ProblemPlacement(problem)
        known = snapshot.vm_by_id[vm]
        #: What it takes of each host: less than its memory where huge pages are ready for it.
        self._needed_mb = {
            host: handed_out_mb(snapshot, snapshot.host_by_id[host], (known,)) for host in problem.hosts
        }
        #: Running VMs that it must not share a host with, and those that it must.
        hard = [one for one in constraints(snapshot, problem.cluster) if one.hard and vm in one.vms]
        self._rivals = problem.where.keys() & _rivals(hard, vm)
        gathering = (one.vms for one in hard if isinstance(one.form, Same))
        self._gathering = [running for vms in gathering if (running := problem.where.keys() & vms)]
        #: The migrations that must come first at least, by host that it may start on as far as nothing that
        #: moves decides it; None where it is hopeless.
        filters = (
            rule
            for rule in filters_of(snapshot, problem.cluster)
            if rule.depends_on.fixed_in(snapshot, problem.cluster)
        )
        request = request_for(snapshot, problem.cluster, (vm,), problem.hosts)
        hosts = accepted_hosts(snapshot, filters, request)
        self._at_first = {host: self._distance(host) for host in hosts}
        self._small = len(problem.hosts) <= _FEW_HOSTS and len(problem.memory_mb) <= _FEW_VMS
        nearest = self._nearest()
        self.at_least = nearest[0][0] if nearest else 0

    def run(self, deadline: Deadline) -> tuple[list[Move], str | None, bool]:
        """Moves, where the VM could start after them, and whether no fewer let it start (or none at all)."""
        problem, placement = self._problem, self._placement
        search: BestFirst[Places, Move] = BestFirst(frozenset(), (self.at_least,))
        while search.seen < _MOST and not deadline.over and (state := search.pop_next()) is not None:
            estimate = search.rank[0]
            put_at(placement, state)
            nearest = self._nearest()
            moves = search.steps_to(state)
            host = self._opening(moves, [host for near, host in nearest if near == 0])
            if host is not None:
                return moves, host, self._small or estimate == self.at_least
            for move in list(self._moves([host for _, host in nearest])):
                after = places_after(problem, state, move)
                migrations = search.cost(state)[0] + len(move.vms)
                if search.cheaper(after, (migrations,)):
                    put_at(placement, after)
                    if nearest := self._nearest():
                        moved_mb = sum(problem.memory_mb[vm] for vm, _ in after)
                        rank = migrations + nearest[0][0], placement.violations(), moved_mb
                        search.add(state, move, after, (migrations,), rank)
                    put_at(placement, state)
        return [], None, self._small and search.exhausted

    def _opening(self, moves: Sequence[Move], hosts: Sequence[str]) -> str | None:
        """Of hosts that nothing more must leave, the first that all rules let the VM start on."""
        if not hosts:
            return None
        certified = certify(self._snapshot, self._problem, moves)
        if certified.refused is not None:
            return None
        end, cluster = certified.end, self._problem.cluster
        return next((host for host in hosts if not any(vetoes(end, cluster, (self._vm,), host))), None)

    def _moves(self, nearest: Sequence[str]) -> Iterator[Move]:
        """What may help."""
        placement, problem = self._placement, self._problem
        hosts = sorted(problem.hosts, key=lambda host: -placement.free_mb(host))
        vms = sorted(problem.memory_mb)
        if not self._small:
            vms = list(dict.fromkeys(vm for host in nearest[:_NEAREST] for vm in self._leaving(host)))
        for vm in vms:
            legal = (host for host in hosts if placement.legal(vm, host))
            yield from (Move((vm,), host) for host in islice(legal, None if self._small else _SPARE))
        for closure in closures(placement, sorted({*vms}.union(*self._gathering))):
            yield from (Move(closure, host) for host in hosts if placement.legal_closure(closure, host))

    def _leaving(self, host: str) -> Iterator[str]:
        """Rivals; of the others the smallest that make room alone, and the largest."""
        rivals, movable, lacking_mb = self._on(host)
        yield from rivals
        if lacking_mb > 0:
            yield from [vm for vm in movable if self._problem.memory_mb[vm] >= lacking_mb][-_LEAVING:]
            yield from movable[:_LEAVING]

    def _nearest(self) -> list[tuple[int, str]]:
        """Hosts with the migrations that must come first at least, the nearest first; none is hopeless.

        Of those that are as near, the one that has most room at the start comes first.
        """
        moved = self._placement.moved
        touched = {self._problem.where[vm] for vm in moved}.union(moved.values())
        again = {host: self._distance(host) for host in touched & self._at_first.keys()}
        found = (self._at_first | again).items()
        return sorted(((near, host) for host, near in found if near is not None), key=lambda one: one[0])

    def _on(self, host: str) -> tuple[list[str], list[str], int]:
        """Rivals on a host, others that can leave it, the largest first, and the MiB that these must free."""
        placement, memory_mb = self._placement, self._problem.memory_mb
        on = sorted(placement.on(host))
        rivals = [vm for vm in on if vm in self._rivals]
        others = (vm for vm in on if vm not in self._rivals and vm in memory_mb)
        movable = sorted((vm for vm in others if self._problem.targets[vm]), key=lambda vm: -memory_mb[vm])
        left_mb = sum(memory_mb[vm] for vm in rivals)
        return rivals, movable, self._needed_mb[host] - placement.free_mb(host) - left_mb

    def _distance(self, host: str) -> int | None:
        rivals, movable, lacking_mb = self._on(host)
        count = len(rivals)
        while lacking_mb > 0 and movable:
            lacking_mb -= self._problem.memory_mb[movable.pop(0)]
            count += 1
        if lacking_mb > 0 or not all(self._problem.targets[vm] for vm in rivals):
            return None
        # Of peers one at least must come; a group that is together elsewhere comes whole.
        for peers in self._gathering:
            # One that is on its way counts where it will be.
            places = (self._problem.pending.get(vm) or (self._placement.where(vm),) for vm in peers)
            present = frozenset[str]().union(*places)
            if host not in present:
                count = max(count, len(peers) if len(present) == 1 else 1)
        return count


def _rivals(hard: Iterable[Constraint], vm: str) -> set[str]:
    """VMs none of which may share a host with it."""
    limits = ((one.form, one.vms) for one in hard)
    return {
        peer
        for form, vms in limits
        if isinstance(form, AtMost) and form.most == 1 and not form.place_of
        for peer in vms
        if form.own_set(peer) != form.own_set(vm)
    }
