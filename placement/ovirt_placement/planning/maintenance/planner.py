"""Plans the maintenance of hosts: rounds, what is in the way, and what would have to be relaxed."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace as with_fields
from itertools import islice
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
)
from ovirt_placement.planning.plan import NEVER, Deadline, Obstacle, ObstacleKind, Step
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, asking, pose, vetoes
from ovirt_placement.planning.remaining import made_worst, without_rules
from ovirt_placement.planning.requests import Moved, Undoing, plan_back
from ovirt_placement.planning.steps import certify, end_of, plan_seconds, refusal
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.rules.doubts import held
from ovirt_placement.rules.elements.placement import World

#: So often a plan is made again without a move that some rule refuses.
_MOST_REFUSALS = 20
#: The share of the time for the rounds; the rest is for what stands in the way of hosts that get none.
_ROUNDS_SHARE = 0.7
#: The share of the time that is left for one host of these.
_HOST_SHARE = 0.3
#: The share of the rest of the time for the way back.
_BACK_SHARE = 0.5
#: This many obstacles are relaxed, the first of each host before others, and the share of the time left for
#: each.
_MOST_RELAXED = 12
_RELAXING_SHARE = 0.3
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
    asked = tuple(one.id for one in snapshot.hosts_of_cluster[cluster] if one.id in frozenset(hosts))
    options = with_fields(options, frozen=held(snapshot, cluster) or options.frozen)
    whole = Site(snapshot, cluster, asked, options, Reserve(snapshot, cluster, options.domains))
    shut = {host: why for host in asked if (why := whole.blocked(host)) is not None}
    site, outcome, found = _planned(
        with_fields(whole, asked=tuple(host for host in asked if host not in shut)),
        deadline.within(_ROUNDS_SHARE),
    )
    left = set(site.asked).difference(*(one.hosts for one in found.rounds))
    more, end, tried = _further(site, [host for host in site.asked if host in left], found.end, deadline)
    left.difference_update(*(one.hosts for one in more))
    no_round = Obstacle(ObstacleKind.NO_ROUND)
    untried = [BlockedHost(host=host, vms=(), obstacles=(no_round,)) for host in site.asked if host in left]
    rounds, proven = (*found.rounds, *more), outcome.proven and not more
    site = with_fields(site, asked=tuple(host for host in site.asked if host not in left))
    # These alone may take fewer rounds, or migrations.
    if left and site.asked and not proven and not deadline.over:
        alone, outcome, found = _planned(site, deadline.within(_ROUNDS_SHARE))
        taken = {host for one in found.rounds for host in one.hosts}
        if taken == {*site.asked} and _cost(found.rounds) <= _cost(rounds):
            site, rounds, end, proven = alone, found.rounds, found.end, outcome.proven
    migrations = _cost(rounds)[1]
    # What rules refused on the way may only just have been refused: with it left out, nothing is proven.
    proven = proven and not found.refused and site.options.refused == options.refused
    back = _way_back(site, end, deadline.within(_BACK_SHARE))
    plan = MaintenancePlan(
        cluster=cluster,
        at_once=options.at_once,
        rounds=rounds,
        blocked=(*shut.values(), *(tried.get(one.host, one) for one in untried)),
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


def _cost(rounds: Sequence[Round]) -> tuple[int, int]:
    """How many rounds they are, with how many migrations."""
    return len(rounds), sum(len(step.vms) for one in rounds for step in one.steps)


def _planned(site: Site, deadline: Deadline) -> tuple[Site, Outcome, Verified]:
    """Outcomes until all rules let one pass; what they refuse is left out by the next.

    Once time is over, the rounds before what they refuse are the plan.
    """
    for _ in range(_MOST_REFUSALS):
        outcome = best_outcome(site, deadline)
        found = verified(site, outcome.waves)
        refused = site.options.refused | found.refused
        if refused == site.options.refused or deadline.over:
            break
        site = with_fields(site, options=with_fields(site.options, refused=refused))
    return site, outcome, found


class Verified(NamedTuple):
    """Rounds that all rules let pass, the state after them, and what was refused in the next one."""

    rounds: tuple[Round, ...]
    end: Snapshot
    refused: frozenset[tuple[str, str]] = frozenset()


def verified(site: Site, waves: Sequence[Wave]) -> Verified:
    """The rounds of an outcome, as far as rules, capacity and the state of VMs and hosts let them be."""
    state, frozen, refused = site.snapshot, site.options.frozen, site.options.refused
    rounds: list[Round] = []
    for wave in waves:
        asking = PlanOptions(closed=site.never, constraints=tuple(leaving(state, wave.hosts)))
        certified = certify(state, pose(state, site.cluster, frozen, refused, asking), wave.moves)
        after = certified.end
        if certified.refused is not None:
            found = refusal(after, site.cluster, certified.refused)
            return Verified(tuple(rounds), state, frozenset(found))
        for vm, host in wave.by_engine:
            if next(vetoes(after, site.cluster, (vm,), host), None) is not None:
                return Verified(tuple(rounds), state, frozenset({(vm, host)}))
            after = World(after).moved((vm,), host).snapshot
        state = World(after).activated(frozenset(filter(site.returns, wave.hosts))).snapshot
        rounds.append(_round(site, wave, certified.steps))
    return Verified(tuple(rounds), state)


def _round(site: Site, wave: Wave, steps: tuple[Step, ...]) -> Round:
    return Round(
        hosts=wave.hosts,
        steps=steps,
        stopped=tuple(vm for host in wave.hosts for vm in site.stopped_on(host)),
        by_engine=wave.by_engine,
        migrating_seconds=plan_seconds(steps),
        maintenance_seconds=site.options.host_seconds,
    )


def _further(
    site: Site, hosts: Sequence[str], state: Snapshot, deadline: Deadline
) -> tuple[list[Round], Snapshot, Mapping[str, BlockedHost]]:
    """Take hosts one at a time by plans that repair nothing, until none is left that can be emptied.

    The rounds, the state after them, and what then stands in the way of each host that was tried.
    """
    rounds, tried = list[Round](), dict[str, BlockedHost]()
    left = sorted(hosts, key=site.rank)
    while not deadline.over and (host := next((one for one in left if one not in tried), None)):
        vms = frozenset(site.stopped_on(host))
        asked = (one for one in leaving(state, (host,)) if vms.isdisjoint(one.vms))
        options = asking(state, site.cluster, asked, {host} | site.never)
        plan = make_plan(
            state,
            site.cluster,
            site.options.frozen,
            refused=site.options.refused,
            options=options,
            deadline=deadline.within(_HOST_SHARE),
        )
        staying = [one for one in plan.remaining if one.family == Leaving.family]
        after = end_of(state, plan.steps)
        lost = None if staying else site.reserve.worse(site.out(after, (host,)))
        if not staying and lost is None and host not in site.by_engine:
            state = World(after).activated(frozenset({host})).snapshot if site.returns(host) else after
            rounds.append(_round(site, Wave((host,)), plan.steps))
            left.remove(host)
            tried = {}
            continue
        obstacles = dict.fromkeys(obstacle for one in staying for obstacle in one.obstacles)
        if not staying and site.reserve.start is not None and lost is not None and lost.losses:
            start = site.reserve.start
            by_hosts = ({loss.hosts: loss.unplaced for loss in one.losses} for one in (start, lost))
            hosts, unplaced = made_worst(*by_hosts)
            now, then = start.unplaced, lost.unplaced
            out = Obstacle(ObstacleKind.OUT, hosts=hosts, unplaced=unplaced, needed=then, available=now)
            obstacles = {out: None}
        elif not staying:
            obstacles = {Obstacle(ObstacleKind.NO_ROUND): None}
        all_staying = tuple(vm for one in staying for vm in one.vms)
        tried[host] = BlockedHost(host=host, vms=all_staying, obstacles=tuple(obstacles))
    return rounds, state, tried


def _relaxations(site: Site, plan: MaintenancePlan, deadline: Deadline) -> Iterator[Relaxation]:
    """Of obstacles that a user may relax, what each frees; as far as there is time to plan."""
    found = (one for blocked in plan.blocked for every in blocked.obstacles for one in _relaxable(every))
    distinct: dict[Hashable, Obstacle] = {}
    for one in found:
        distinct.setdefault((one.kind, one.groups or one.vms), one)
    for obstacle in islice(distinct.values(), _MOST_RELAXED):
        if deadline.over:
            return
        state, options = _without(site, obstacle)
        more = plan_maintenance(state, site.asked, options, deadline.within(_RELAXING_SHARE))
        yield Relaxation(obstacle=obstacle, hosts=tuple(one for one in more.hosts if one not in plan.hosts))


def _relaxable(obstacle: Obstacle) -> Iterator[Obstacle]:
    """What of an obstacle may be relaxed; a filter's refusal names the group that it is for."""
    groups = dict.fromkeys(reason.group for reason in obstacle.reasons if reason.group is not None)
    for group in groups:
        yield Obstacle(ObstacleKind.RULE, obstacle.vms, groups=(group,), asks="as it asks")
    held = obstacle.kind is ObstacleKind.STAYS and (obstacle.reasons or obstacle.words)
    # What maintenance itself asks for is no rule of anybody's, and has no groups.
    rule = obstacle.kind is ObstacleKind.RULE and obstacle.groups
    if held or rule or obstacle.kind is ObstacleKind.OUT:
        yield obstacle


def _without(site: Site, obstacle: Obstacle) -> tuple[Snapshot, MaintenanceOptions]:
    """The state without a rule or a reservation; or with consent that VMs are stopped."""
    snapshot, options = site.snapshot, with_fields(site.options, explained=False, back=Return.NONE)
    if obstacle.kind is ObstacleKind.STAYS:
        frozen = {vm: why for vm, why in options.frozen.items() if vm not in obstacle.vms}
        stopped = options.stopped.union(obstacle.vms)
        return snapshot, with_fields(options, frozen=frozen, stopped=stopped)
    if obstacle.kind is ObstacleKind.RULE:
        return without_rules(snapshot, obstacle.groups), options
    clusters = tuple(replace(one, ha_reservation=False) for one in snapshot.clusters)
    return replace(snapshot, clusters=clusters), options


def _way_back(site: Site, end: Snapshot, deadline: Deadline) -> Undoing:
    """As the options ask: none, those of rules that were satisfied and are not any more, or all."""
    moved = tuple(_moved(site, end)) if site.options.back is not Return.NONE else ()
    if site.options.back is Return.RULED:
        before = {(one.constraint.family, one.groups) for one in find_violations(site.snapshot, site.cluster)}
        # Soft rules, as no other may be violated.
        fresh = (
            violation.constraint
            for violation in find_violations(end, site.cluster)
            if (violation.constraint.family, violation.groups) not in before
        )
        wanted = {vm for constraint in fresh for vm in constraint.vms}
        moved = tuple(one for one in moved if one.vm in wanted)
    return plan_back(end, site.cluster, moved, site.options.frozen, deadline, site.reserve.worse)


def _moved(site: Site, end: Snapshot) -> Iterator[Moved]:
    """VMs that are elsewhere than at the start; only the engine moves the hosted engine."""
    for vm in site.snapshot.vms:
        now = end.vm_by_id[vm.id].host
        if vm.cluster == site.cluster and vm.host and now and now != vm.host and not vm.hosted_engine:
            yield Moved(vm.id, vm.host, now)
