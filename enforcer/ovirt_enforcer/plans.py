"""Plans as the configuration asks for them, and for a person who asks; nothing is carried out."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final

import msgspec

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.configured import configured_domains
from ovirt_placement.answers.plans import ClusterPlan, Plans, plan_record
from ovirt_placement.answers.plans.maintenance import ClusterMaintenance
from ovirt_placement.config import HaSettings
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.infrastructure import STARTABLE_STATUSES, Return
from ovirt_placement.model.names import Named, counted, host_name, named_host, named_vm, vm_name
from ovirt_placement.model.record import Record, with_names
from ovirt_placement.planning import strategies
from ovirt_placement.planning.maintenance.planner import plan_maintenance
from ovirt_placement.planning.maintenance.site import MaintenanceOptions
from ovirt_placement.planning.plan import Deadline, Obstacle, ObstacleKind, Plan, Remaining
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from ovirt_placement.planning.problem.ends import Strategy
from ovirt_placement.planning.requests import make_room
from ovirt_placement.planning.strategies import StrategyName
from ovirt_placement.rules.elements.verdict import sentence
from ovirt_placement.rules.failover.outcomes import Domain
from ovirt_service.errors import UserError

#: How long planning may take, in seconds, where the configuration does not say.
_SECONDS: Final = {StrategyName.OPTIMAL: 30.0}
_QUICK_SECONDS: Final = 5.0


def plan_options(
    settings: EnforcerSettings,
    spared: Collection[str] = (),
    closed: Collection[str] = (),
    domains: tuple[Domain, ...] | None = (),
) -> PlanOptions:
    """What plans are to repair and to keep; groups in `spared` and hosts in `closed` are left alone for now.

    HA reservations survive the failure of `domains`, too; None where these are not known.
    """
    return PlanOptions(
        repair=frozenset(map(Repair, settings.repair)),
        keys=settings.repair_placement_keys,
        memory_headroom=settings.memory_headroom_percent / 100,
        cpu_headroom=settings.cpu_headroom_percent / 100,
        spared=frozenset(spared),
        closed=frozenset(closed),
        reserve=settings.ha.repair and domains is not None,
        domains=domains or (),
    )


def failure_domains(settings: HaSettings, snapshot: Snapshot) -> tuple[Domain, ...] | None:
    """The failure domains; None where the configuration is at fault, which the HA watch reports."""
    try:
        return configured_domains(snapshot, settings)
    except UserError:
        return None


def strategy_name(settings: EnforcerSettings) -> StrategyName:
    return strategies.DEFAULT if settings.strategy is None else StrategyName(settings.strategy)


def planning_seconds(settings: EnforcerSettings) -> float:
    return settings.planning_seconds or _SECONDS.get(strategy_name(settings), _QUICK_SECONDS)


#: One migration fewer is worth waiting so long: as long as a first refusal or failure holds back.
_WORTH_SECONDS: Final = 600.0
#: The share of the time for a plan of what may be done now, where another may be better after a while.
_NOW_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Holding:
    """What a plan leaves alone for now, each with the reason."""

    #: VMs, VMs with hosts that they are not to be sent to, and groups that are not repaired.
    frozen: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[tuple[str, str], str] = field(default_factory=dict)
    spared: Mapping[str, str] = field(default_factory=dict)
    #: Those of the VMs (with "" for any host) and targets that only time holds, and for how many seconds.
    waits: Mapping[tuple[str, str], float] = field(default_factory=dict)


def repair_plan(
    snapshot: Snapshot,
    cluster: str,
    holding: Holding,
    options: PlanOptions,
    strategy: Strategy,
    deadline: Deadline,
) -> Plan:
    """The plan that repairs a cluster with the fewest migrations, now or after a while.

    What the engine refused is left out, and the next best is done at once. The next best is to wait, where
    time alone lets the same be repaired with fewer migrations: `_WORTH_SECONDS` for each that is saved, at
    the most. What does not wait is done now; of what waits, be it a rule, placement keys or the HA
    reservation, it is said for what.
    """
    make = partial(make_plan, snapshot, cluster, options=options, strategy=strategy)
    first = deadline.within(_NOW_SHARE) if holding.waits else deadline
    plan = make(holding.frozen, refused=holding.left_out.keys(), deadline=first)
    if holding.waits and plan.migrations > 1 and not deadline.over:
        frozen = {vm: why for vm, why in holding.frozen.items() if (vm, "") not in holding.waits}
        left_out = holding.left_out.keys() - holding.waits.keys()
        later = make(frozen, refused=left_out, deadline=deadline.within(_NOW_SHARE))
        seconds = _waiting_seconds(later, holding.waits)
        saved = plan.migrations - later.migrations
        worth = 0.0 < max(seconds, default=0.0) <= saved * _WORTH_SECONDS
        if worth and _left(later) <= _left(plan):
            held = next(step for step, wait in zip(later.steps, seconds, strict=True) if wait)
            what = f"{' and '.join(vm_name(vm, snapshot) for vm in held.vms)} may be moved to"
            reason = (
                f"it waits, {saved * _WORTH_SECONDS / 60:.0f} min at most, until {what}"
                f" {host_name(held.target, snapshot)}: {counted(later.migrations, 'migration')} will do then,"
                f" and {plan.migrations} would now"
            )
            going = {vm for at, step in enumerate(later.steps) if not seconds[at] for vm in step.vms}
            staying = {vm.id: holding.frozen.get(vm.id, reason) for vm in snapshot.vms if vm.id not in going}
            now = make(staying, refused=holding.left_out.keys(), deadline=deadline, explained=False)
            if now.migrations < later.migrations:
                plan = _until_then(now, later, reason)
    return with_held_back(plan, snapshot, holding)


def _waiting_seconds(plan: Plan, waits: Mapping[tuple[str, str], float]) -> list[float]:
    """For each step, how long it has to wait, for its own VMs or for the steps before it."""
    seconds: list[float] = []
    for step in plan.steps:
        own = [waits.get((vm, host), 0.0) for vm in step.vms for host in ("", step.target)]
        seconds.append(max([*own, *(seconds[before] for before in step.after)]))
    return seconds


def _until_then(now: Plan, later: Plan, reason: str) -> Plan:
    """What is done now; what stays violated now and not later waits."""
    lasting = {(one.family, one.groups or one.vms): one for one in later.remaining}
    remaining = tuple(
        lasting.get((one.family, one.groups or one.vms))
        or msgspec.structs.replace(one, obstacles=(_held(reason, vms=one.vms, groups=one.groups),))
        for one in now.remaining
    )
    reservation = now.reservation
    if (
        reservation is not None
        and later.reservation is not None
        and reservation.lost != later.reservation.lost
    ):
        reservation = msgspec.structs.replace(reservation, proven=False, waits=reason)
    # It could be repaired now, with more.
    return msgspec.structs.replace(now, proven=False, remaining=remaining, reservation=reservation)


def _left(plan: Plan) -> set[tuple[str, tuple[str, ...]]]:
    lost = () if plan.reservation is None else plan.reservation.lost
    rules = ((one.family, one.groups or one.vms) for one in plan.remaining)
    return {*rules, *(("ha", one.vms) for one in lost)}


#: This many targets are reported a rule: a large group may have a hundred.
_MOST: Final = 10


def with_held_back(plan: Plan, snapshot: Snapshot, holding: Holding) -> Plan:
    """The plan with more obstacles: groups that are spared, and targets left out of VMs not held anyway."""
    if not holding.spared and not holding.left_out:
        return plan

    def obstacles(rule: Remaining) -> Iterator[Obstacle]:
        spared = (group for group in rule.groups if group in holding.spared)
        yield from (_held(holding.spared[group], groups=(group,)) for group in spared)
        yield from rule.obstacles
        targets = (
            _held(f"{vm_name(vm, snapshot)}: {reason}", vms=(vm,), hosts=(host,))
            for (vm, host), reason in holding.left_out.items()
            if vm in rule.vms and vm not in holding.frozen
        )
        yield from islice(targets, _MOST)

    remaining = (msgspec.structs.replace(rule, obstacles=tuple(obstacles(rule))) for rule in plan.remaining)
    return msgspec.structs.replace(plan, remaining=tuple(remaining))


def _held(
    words: str, vms: tuple[str, ...] = (), hosts: tuple[str, ...] = (), groups: tuple[str, ...] = ()
) -> Obstacle:
    return Obstacle(ObstacleKind.HELD, vms, hosts, groups, words=words)


@dataclass(frozen=True, slots=True)
class Asked:
    """A cluster's state, what is wished for, and what is to be left alone."""

    snapshot: Snapshot
    options: PlanOptions
    #: Of a state file there are none.
    settings: EnforcerSettings | None = None
    holding: Holding = Holding()
    #: Says of a plan why its first step would not be taken now; None if it would.
    not_now: Callable[[Plan], str | None] = lambda plan: None
    #: What is left alone while hosts, by id, are emptied; None where that makes no difference.
    frozen_while_emptying: Callable[[Collection[str]], Mapping[str, str]] | None = None


class RefusingHost(Record, frozen=True, omit_defaults=False):
    """A host that does not take the VM as things are."""

    host: Named
    reasons: tuple[str, ...]


class RoomFound(Record, frozen=True, omit_defaults=False):
    """The migrations that let a VM start."""

    vm: Named
    #: Where it can start afterwards; null if nothing was found.
    host: Named | None
    plan: ClusterPlan
    #: Why each host refuses it as things are; none, if one takes it.
    because: tuple[RefusingHost, ...]


class KeptVm(Record, frozen=True, omit_defaults=False):
    """A VM that stays where a plan took it."""

    id: str
    name: str
    because: str


class PlansBack(Plans, frozen=True, kw_only=True, omit_defaults=False):
    """The migrations that undo what a plan has done."""

    #: The id of the plan that is taken back.
    undoes: str
    kept: tuple[KeptVm, ...]


#: How long a host is thought to be out, in seconds.
HOST_SECONDS = MaintenanceOptions().host_seconds


def maintenance_options(
    found: Asked,
    hosts: Iterable[str],
    *,
    stopped: Collection[str],
    back: Return,
    at_once: int = 1,
    host_seconds: float = HOST_SECONDS,
) -> MaintenanceOptions:
    """With what is held back while these hosts are emptied; `stopped` are ids of VMs that may be."""
    held = found.frozen_while_emptying
    return MaintenanceOptions(
        at_once=at_once,
        back=back,
        host_seconds=host_seconds,
        stopped=frozenset(stopped),
        frozen=found.holding.frozen if held is None else held(tuple(hosts)),
        refused=frozenset(found.holding.left_out),
        closed=found.options.closed,
        domains=found.options.domains,
    )


def maintenance_planned(
    snapshot: Snapshot, hosts: Sequence[str], options: MaintenanceOptions, *, deadline: Deadline
) -> ClusterMaintenance:
    return with_names(ClusterMaintenance, plan_maintenance(snapshot, hosts, options, deadline), snapshot)


def room_for(snapshot: Snapshot, vm: Vm, *, deadline: Deadline) -> RoomFound:
    """The fewest migrations found that let a VM start. Raises `UserError` of one that cannot be started."""
    if vm.host is not None:
        raise UserError(f"VM {vm.name} runs on host {host_name(vm.host, snapshot)} already")
    if expected := snapshot.pending_hosts.get(vm.id):
        raise UserError(f"VM {vm.name} is on its way to host {host_name(expected[0], snapshot)} already")
    if vm.status not in STARTABLE_STATUSES:
        raise UserError(f"VM {vm.name} cannot start now, wherever: its status is {vm.status}")
    room = make_room(snapshot, vm.id, deadline=deadline)
    return RoomFound(
        vm=named_vm(room.vm, snapshot),
        host=None if room.host is None else named_host(room.host, snapshot),
        plan=plan_record(room.plan, snapshot),
        because=tuple(
            RefusingHost(
                named_host(host, snapshot), tuple(dict.fromkeys(sentence(one, snapshot) for one in reasons))
            )
            for host, reasons in room.refusals
        ),
    )
