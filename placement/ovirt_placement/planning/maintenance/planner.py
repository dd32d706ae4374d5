"""Plans the maintenance of hosts: rounds, what is in the way, and what would have to be relaxed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace as with_fields
from functools import reduce
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.planning.maintenance.draining import Outcome, Wave
from ovirt_placement.planning.maintenance.exact import best_outcome, migrations_at_least, rounds_at_least
from ovirt_placement.planning.maintenance.site import (
    BlockedHost,
    Leaving,
    MaintenanceOptions,
    MaintenancePlan,
    Relaxation,
    Reserve,
    Round,
    Site,
    leaving,
    out,
)
from ovirt_placement.planning.plan import NEVER, Deadline, Obstacle, ObstacleKind, Plan, Step
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, pose, vetoes
from ovirt_placement.planning.requests import Moved, Undoing, plan_back, safe_way
from ovirt_placement.planning.reservation import without_rules
from ovirt_placement.planning.steps import apply, certify, plan_seconds, refusal
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.rules.doubts import held
from ovirt_placement.rules.elements.placement import World

#: The share of the time that is left for one host.
_SHARE = 0.3


class _Further(NamedTuple):
    """More rounds, the state after them, and for each host that is left what was tried for it."""

    rounds: tuple[Round, ...]
    end: Snapshot
    tried: tuple[tuple[str, Plan], ...]


def _further(site: Site, hosts: Sequence[str], state: Snapshot, deadline: Deadline) -> _Further:
    """Take hosts one at a time until none is left that can be emptied; those without a plan are left out."""
    rounds: list[Round] = []
    left = sorted(hosts, key=site.rank)
    while True:
        tried: list[tuple[str, Plan]] = []
        for host in left:
            if deadline.over:
                return _Further(tuple(rounds), state, tuple(tried))
            plan = _emptying(site, host, state, deadline.within(_SHARE))
            after = _taken(site, host, plan, state)
            if after is not None:
                state = after
                rounds.append(_round(site, Wave((host,), (), site.stopped_on(host), ()), plan.steps))
                left.remove(host)
                break
            tried.append((host, plan))
        else:
            return _Further(tuple(rounds), state, tuple(tried))


def _emptying(site: Site, host: str, state: Snapshot, deadline: Deadline) -> Plan:
    """The plan that takes as many VMs off a host as can leave it; no rule that is violated is repaired."""
    vms = frozenset(site.stopped_on(host))
    asked = tuple(one for one in leaving(state, (host,)) if vms.isdisjoint(one.vms))
    options = PlanOptions(
        closed=frozenset({host}) | site.never,
        constraints=asked,
        spared=frozenset({*state.group_by_id, *state.label_by_id}),
    )
    return make_plan(
        state, site.cluster, site.options.frozen, refused=site.refused, options=options, deadline=deadline
    )


def _taken(site: Site, host: str, plan: Plan, state: Snapshot) -> Snapshot | None:
    """The state after a round of one host; None if it is not empty, or too little would be survived."""
    if host in site.by_engine or any(one.family == Leaving.family for one in plan.remaining):
        return None
    state = reduce(apply, plan.steps, state)
    if site.reserve.worse(out(state, {host}, site.stopped_on(host))) is not None:
        return None
    return World(state).activated(frozenset({host})).snapshot if site.returns(host) else state


def _shut_hosts(site: Site) -> Mapping[str, BlockedHost]:
    """Hosts that cannot be emptied whatever is moved, with the reason."""
    found = {}
    for host in site.asked:
        fault, staying = site.at_fault(host), site.staying(host)
        if fault is not None or staying:
            # Of a host that does not answer that is said once, and not of each of its VMs.
            obstacles = (fault,) if fault is not None else tuple(staying.values())
            found[host] = BlockedHost(host=host, vms=tuple(staying), obstacles=obstacles)
    return found


def _blocked_host(site: Site, host: str, plan: Plan | None, state: Snapshot) -> BlockedHost:
    """What stands in the way of a host by the plan that was tried for it, if any was, in the last state."""
    if plan is None:
        return BlockedHost(host=host, vms=(), obstacles=(Obstacle(ObstacleKind.NO_ROUND),))
    staying = [one for one in plan.remaining if one.family == Leaving.family]
    obstacles = dict.fromkeys(obstacle for one in staying for obstacle in one.obstacles)
    if not staying:
        obstacles = dict.fromkeys(_of_reserve(site, host, plan, state))
    vms = tuple(vm for one in staying for vm in one.vms)
    return BlockedHost(host=host, vms=vms, obstacles=tuple(obstacles))


def _of_reserve(site: Site, host: str, plan: Plan, state: Snapshot) -> Iterator[Obstacle]:
    """What fails less well while an empty host is out."""
    state = reduce(apply, plan.steps, state)
    found = site.reserve.worse(out(state, {host}, site.stopped_on(host)))
    if found is None or site.reserve.start is None or not found.losses:
        yield Obstacle(ObstacleKind.NO_ROUND)
        return
    worst = max(found.losses, key=lambda loss: len(loss.unplaced))
    yield Obstacle(
        ObstacleKind.OUT,
        hosts=worst.hosts,
        unplaced=worst.unplaced,
        needed=found.unplaced,
        available=site.reserve.start.unplaced,
    )


#: This many are tried, the first of each host before others.
_MOST_TRIED = 12
#: The share of the time that is left for each of them.
_RELAXING_SHARE = 0.3


def _relaxations(site: Site, plan: MaintenancePlan, deadline: Deadline) -> Iterator[Relaxation]:
    """Of obstacles that a user may relax, what each frees; as far as there is time to plan."""
    quick = with_fields(site.options, explained=False, back=Return.NONE)
    known = frozenset(plan.hosts)
    for obstacle in list(_relaxable(plan))[:_MOST_TRIED]:
        if deadline.over:
            return
        state, asked = _without(site.snapshot, quick, obstacle)
        found = plan_maintenance(state, site.asked, asked, deadline.within(_RELAXING_SHARE))
        yield Relaxation(obstacle=obstacle, hosts=tuple(host for host in found.hosts if host not in known))


def _relaxable(plan: MaintenancePlan) -> Iterator[Obstacle]:
    seen = set()
    for one in plan.blocked:
        for obstacle in (found for every in one.obstacles for found in _parts(every)):
            key = obstacle.kind, obstacle.groups or obstacle.vms
            if key not in seen:
                seen.add(key)
                yield obstacle


def _parts(obstacle: Obstacle) -> Iterator[Obstacle]:
    """What of an obstacle may be relaxed; a filter's refusal names the group that it is for."""
    groups = dict.fromkeys(reason.group for reason in obstacle.reasons if reason.group is not None)
    for group in groups:
        yield Obstacle(ObstacleKind.RULE, obstacle.vms, groups=(group,), asks="as it asks")
    held = obstacle.kind is ObstacleKind.STAYS and (obstacle.reasons or obstacle.words)
    # What maintenance itself asks for is no rule of anybody's, and has no groups.
    rule = obstacle.kind is ObstacleKind.RULE and obstacle.groups
    if held or rule or obstacle.kind is ObstacleKind.OUT:
        yield obstacle


def _without(
    snapshot: Snapshot, options: MaintenanceOptions, obstacle: Obstacle
) -> tuple[Snapshot, MaintenanceOptions]:
    """The state without a rule or a reservation; or with consent that VMs are stopped."""
    if obstacle.kind is ObstacleKind.STAYS:
        vms = frozenset(obstacle.vms)
        frozen = {vm: why for vm, why in options.frozen.items() if vm not in vms}
        return snapshot, with_fields(options, frozen=frozen, stopped=options.stopped | vms)
    if obstacle.kind is ObstacleKind.RULE:
        return without_rules(snapshot, obstacle.groups), options
    clusters = tuple(replace(one, ha_reservation=False) for one in snapshot.clusters)
    return replace(snapshot, clusters=clusters), options


#: So often a plan is made again without a move that some rule refuses.
_MOST_REFUSALS = 20
#: The share of the time for the rounds; the rest is for what stands in the way of hosts that get none.
_ROUNDS_SHARE = 0.7
#: The share of the rest of the time for the way back.
_BACK_SHARE = 0.5
_DEFAULT_OPTIONS = MaintenanceOptions()


def plan_maintenance(
    snapshot: Snapshot,
    hosts: Collection[str],
    options: MaintenanceOptions = _DEFAULT_OPTIONS,
    deadline: Deadline = NEVER,
) -> MaintenancePlan:
    """The rounds in which hosts of one cluster can be maintained, and all migrations that this takes.

    Hosts are given as ids, at least one; all are of the cluster of the first. In every state on the way every
    hard rule is satisfied that is now, each migration passes all filters in force, and no more failures are
    lost than now, where the cluster reserves for its highly available VMs. Without a deadline the work is
    bounded, not the time; with one, a first outcome and its check may go on beyond it: nothing can be said
    without.
    """
    cluster = snapshot.host_by_id[next(iter(hosts))].cluster
    wanted = frozenset(hosts)
    options = with_fields(options, frozen=held(snapshot, cluster) or options.frozen)
    whole = Site(
        snapshot,
        cluster,
        tuple(one.id for one in snapshot.hosts_of_cluster[cluster] if one.id in wanted),
        options,
        options.refused,
        Reserve(snapshot, cluster, options.domains),
    )
    shut = _shut_hosts(whole)
    site = with_fields(whole, asked=tuple(host for host in whole.asked if host not in shut))
    site, outcome, found = _planned(site, deadline.within(_ROUNDS_SHARE))
    left = [host for host in site.asked if all(host not in one.hosts for one in found.rounds)]
    more = _further(site, left, found.end, deadline)
    rounds = (*found.rounds, *more.rounds)
    migrations = sum(len(step.vms) for one in rounds for step in one.steps)
    # What rules refused on the way may only just have been refused: with it left out, nothing is proven.
    proven = outcome.proven and not found.refused and site.refused == options.refused and not more.rounds
    tried = dict(more.tried)
    back = _way_back(site, more.end, deadline.within(_BACK_SHARE))
    plan = MaintenancePlan(
        cluster=cluster,
        at_once=options.at_once,
        rounds=rounds,
        blocked=(
            *shut.values(),
            *(
                _blocked_host(site, host, tried.get(host), more.end)
                for host in left
                if all(host not in one.hosts for one in more.rounds)
            ),
        ),
        back=back.plan.steps,
        back_seconds=back.plan.seconds,
        kept=tuple(back.kept.items()),
        rounds_at_least=len(rounds) if proven else min(rounds_at_least(site), len(rounds)),
        migrations_at_least=migrations if proven else min(migrations_at_least(site, len(rounds)), migrations),
        proven=proven,
    )
    if not options.explained or not plan.blocked:
        return plan
    return replace(plan, relaxations=tuple(_relaxations(whole, plan, deadline)))


def _planned(site: Site, deadline: Deadline) -> tuple[Site, Outcome, Verified]:
    """Outcomes until all rules let one pass; what they refuse is left out by the next.

    Once time is over, the rounds before what they refuse are the plan.
    """
    for _ in range(_MOST_REFUSALS):
        outcome = best_outcome(site, deadline)
        found = verified(site, outcome.waves)
        if found.refused <= site.refused or deadline.over:
            break
        site = with_fields(site, refused=site.refused | found.refused)
    return site, outcome, found


class Verified(NamedTuple):
    """Rounds that all rules let pass, the state after them, and what was refused in the next one."""

    rounds: tuple[Round, ...]
    end: Snapshot
    refused: frozenset[tuple[str, str]]


def verified(site: Site, waves: Sequence[Wave]) -> Verified:
    """The rounds of an outcome, as far as rules, capacity and the state of VMs and hosts let them be."""
    state = site.snapshot
    rounds: list[Round] = []
    for wave in waves:
        asking = PlanOptions(closed=site.never, constraints=tuple(leaving(state, wave.hosts)))
        problem = pose(state, site.cluster, site.options.frozen, site.refused, asking)
        certified = certify(state, problem, wave.moves)
        if certified.refused is not None:
            found = refusal(certified.end, site.cluster, certified.refused)
            return Verified(tuple(rounds), state, frozenset(found))
        after = _moved_by_engine(site, certified.end, wave)
        if isinstance(after, tuple):
            return Verified(tuple(rounds), state, frozenset({after}))
        back = frozenset(host for host in wave.hosts if site.returns(host))
        state = World(after).activated(back).snapshot
        rounds.append(_round(site, wave, certified.steps))
    return Verified(tuple(rounds), state, frozenset())


def _moved_by_engine(site: Site, state: Snapshot, wave: Wave) -> Snapshot | tuple[str, str]:
    """The state once the engine has moved its own VM; or the VM and the host, if a filter refuses it."""
    for vm, host in wave.by_engine:
        if next(vetoes(state, site.cluster, (vm,), host), None) is not None:
            return vm, host
        state = World(state).moved((vm,), host).snapshot
    return state


def _round(site: Site, wave: Wave, steps: tuple[Step, ...]) -> Round:
    return Round(
        hosts=wave.hosts,
        steps=steps,
        stopped=wave.stopped,
        by_engine=wave.by_engine,
        migrating_seconds=plan_seconds(steps),
        maintenance_seconds=site.options.host_seconds,
    )


def _way_back(site: Site, end: Snapshot, deadline: Deadline) -> Undoing:
    """As the options ask: none, those of rules that were satisfied and are not any more, or all."""
    match site.options.back:
        case Return.NONE:
            moved: tuple[Moved, ...] = ()
        case Return.RULED:
            wanted = _ruled(site, end)
            moved = tuple(one for one in _moved(site, end) if one.vm in wanted)
        case Return.ALL:
            moved = tuple(_moved(site, end))
    found = plan_back(end, site.cluster, moved, site.options.frozen, deadline)
    return safe_way(found, end, moved, lambda home: site.reserve.worse(home) is not None)


def _moved(site: Site, end: Snapshot) -> Iterator[Moved]:
    """VMs that are elsewhere than at the start; only the engine moves the hosted engine."""
    for vm in site.snapshot.vms:
        now = end.vm_by_id[vm.id].host
        if vm.cluster == site.cluster and vm.host and now and now != vm.host and not vm.hosted_engine:
            yield Moved(vm.id, vm.host, now)


def _ruled(site: Site, end: Snapshot) -> frozenset[str]:
    """VMs of rules that are violated at the end and were not at the start: soft ones, as no other may be."""
    before = {(one.constraint.family, one.groups) for one in find_violations(site.snapshot, site.cluster)}
    fresh = (
        one for one in find_violations(end, site.cluster) if (one.constraint.family, one.groups) not in before
    )
    return frozenset(vm for one in fresh for vm in one.constraint.vms)
