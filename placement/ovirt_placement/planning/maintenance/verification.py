"""Holds a maintenance plan against all rules, step by step, and plans the way home."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.legality import vetoes
from ovirt_placement.planning.maintenance.data import Round, leaving
from ovirt_placement.planning.maintenance.draining import Wave
from ovirt_placement.planning.maintenance.site import Reserve, Site
from ovirt_placement.planning.ordering.schedule import ScheduleLimits, schedule
from ovirt_placement.planning.plan import Obstacle, ObstacleKind, Plan, Remaining, Step
from ovirt_placement.planning.problem.build_problem import PlanOptions, pose
from ovirt_placement.planning.problem.problem import Move
from ovirt_placement.planning.reservation import harm
from ovirt_placement.planning.undoing import Moved, Undoing, plan_back
from ovirt_placement.planning.verification import Certified, apply, certify, refusal
from ovirt_placement.rules.elements.world import World
from ovirt_placement.rules.violations import find_violations


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
        certified = certified_moves(site, state, wave.moves, wave.hosts)
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


def certified_moves(site: Site, state: Snapshot, moves: Sequence[Move], emptied: Sequence[str]) -> Certified:
    """Moves as steps that go on at once as far as they may, each held against all rules."""
    options = PlanOptions(closed=site.never, constraints=tuple(leaving(state, emptied)))
    problem = pose(state, site.cluster, site.options.frozen, site.refused, options)
    return certify(state, problem, moves)


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
        migrating_seconds=schedule(steps, ScheduleLimits()).makespan,
        maintenance_seconds=site.options.host_seconds,
    )


#: Stands in place of a family for VMs that are to go back, which no rule asks for.
HOMEWARD = "home"
_ASKS = "back on its host"


class WayBack(NamedTuple):
    """Migrations after the last round, how long they take, and VMs that stay, with the reason."""

    steps: tuple[Step, ...] = ()
    seconds: float = 0.0
    kept: tuple[tuple[str, Obstacle], ...] = ()


def way_back(site: Site, reserve: Reserve, end: Snapshot, deadline: Deadline) -> WayBack:
    """As the options ask: none, those of rules that were satisfied and are not any more, or all."""
    match site.options.back:
        case Return.NONE:
            return WayBack()
        case Return.RULED:
            wanted = _ruled(site, end)
            moved = tuple(one for one in _moved(site, end) if one.vm in wanted)
        case Return.ALL:
            moved = tuple(_moved(site, end))
    found = plan_back(end, site.cluster, moved, site.options.frozen, deadline)
    found = _safe(found, end, moved, lambda home: reserve.worse(home) is not None)
    return WayBack(found.plan.steps, found.plan.seconds, tuple(found.kept.items()))


def plan_home(
    snapshot: Snapshot,
    cluster: str,
    moved: tuple[Moved, ...],
    frozen: Mapping[str, str],
    deadline: Deadline,
) -> Plan:
    """The way back as it is now: a plan, in which `remaining` has the VMs that stay, with the reason."""
    found = plan_back(snapshot, cluster, moved, frozen, deadline)
    plan, kept = _safe(found, snapshot, moved, lambda home: harm(snapshot, home, cluster) is not None)
    staying = (
        Remaining(groups=(), family=HOMEWARD, asks=_ASKS, hard=False, vms=(vm,), obstacles=(why,))
        for vm, why in kept.items()
    )
    return replace(plan, remaining=(*plan.remaining, *staying))


def _safe(
    found: Undoing, state: Snapshot, moved: Sequence[Moved], worse: Callable[[Snapshot], bool]
) -> Undoing:
    """The way back, with how long it takes; no VM goes it if less would be survived then."""
    plan, kept = found
    if plan.steps and worse(reduce(apply, plan.steps, state)):
        lost = Obstacle(ObstacleKind.NO_WAY_BACK)
        plan, kept = replace(plan, steps=()), {one.vm: kept.get(one.vm, lost) for one in moved}
    return Undoing(replace(plan, seconds=schedule(plan.steps, ScheduleLimits()).makespan), kept)


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
