"""Plans for a person who asks: what they are made by, and what they are; nothing is carried out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ovirt_enforcer import configured
from ovirt_enforcer.configured import with_held_back
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_enforcer.subprocess_call import in_process
from ovirt_placement.answers.plans.maintenance import ClusterMaintenance, maintenance_record
from ovirt_placement.answers.plans.plan import ClusterPlan, Plans, plan_record
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.maintenance import Return
from ovirt_placement.model.names import Named, host_name, named_host, named_vm
from ovirt_placement.model.record import Record
from ovirt_placement.planning.assignment import catalogue
from ovirt_placement.planning.assignment.catalogue import StrategyName
from ovirt_placement.planning.assignment.choice import Strategy
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.maintenance.data import MaintenanceOptions
from ovirt_placement.planning.maintenance.planner import plan_maintenance
from ovirt_placement.planning.make_room import make_room
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions
from ovirt_placement.rules.failover.units import Domain
from ovirt_placement.rules.sentences import sentence
from ovirt_service.errors import UserError

_NO_STATE: Final = Snapshot(clusters=(), hosts=(), vms=(), affinity_groups=(), affinity_labels=())


def nothing_holds(plan: Plan) -> str | None:
    """Of a state file no gate is known."""
    return None


@dataclass(frozen=True, slots=True)
class Asked:
    """A cluster's state, what is wished for, and what is to be left alone with the reason."""

    snapshot: Snapshot
    options: PlanOptions
    #: Of a state file there are none.
    settings: EnforcerSettings | None = None
    frozen: Mapping[str, str] = field(default_factory=dict)
    spared: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[tuple[str, str], str] = field(default_factory=dict)
    #: Says of a plan why its first step would not be taken now; None if it would.
    not_now: Callable[[Plan], str | None] = nothing_holds
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


def planned(
    found: Asked,
    cluster: str,
    strategy: Strategy,
    deadline: Deadline,
    staying: Mapping[str, str] | None = None,
) -> Plan:
    """The plan; VMs in `staying` stay where they are besides those that are held anyway, with the reasons."""
    frozen = {**found.frozen, **(staying or {})}
    plan = make_plan(
        found.snapshot,
        cluster,
        frozen,
        refused=found.left_out.keys(),
        options=found.options,
        strategy=strategy,
        deadline=deadline,
    )
    return with_held_back(plan, found.snapshot, found.spared, found.left_out, frozen)


def planned_in_process(found: Asked, cluster: str, seconds: float, staying: Mapping[str, str]) -> Plan:
    """The plan that `planned` makes by the configured strategy, made in a process. Raises `UserError`."""
    strategy = catalogue.DEFAULT if found.settings is None else configured.strategy_name(found.settings)
    # The state goes along in fewer bytes than a pickle, and gates do not go along at all.
    asked = replace(found, snapshot=_NO_STATE, not_now=nothing_holds, frozen_while_emptying=None)
    return in_process(_planned, found.snapshot, asked, cluster, strategy, staying, seconds=seconds)


def _planned(
    snapshot: Snapshot,
    found: Asked,
    cluster: str,
    strategy: StrategyName,
    staying: Mapping[str, str],
    *,
    deadline: Deadline,
) -> Plan:
    found = replace(found, snapshot=snapshot)
    return planned(found, cluster, catalogue.strategy(strategy), deadline, staying)


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
    domains: tuple[Domain, ...] | None = None,
) -> MaintenanceOptions:
    """With what is held back while these hosts are emptied.

    `stopped` are ids of VMs that may be; `domains` replace those found.
    """
    held = found.frozen_while_emptying
    return MaintenanceOptions(
        at_once=at_once,
        back=back,
        host_seconds=host_seconds,
        stopped=frozenset(stopped),
        frozen=found.frozen if held is None else held(tuple(hosts)),
        refused=frozenset(found.left_out),
        closed=found.options.closed,
        domains=found.options.domains if domains is None else domains,
    )


def maintenance_planned(
    snapshot: Snapshot, hosts: Sequence[str], options: MaintenanceOptions, *, deadline: Deadline
) -> ClusterMaintenance:
    """What a rolling maintenance of hosts of one cluster would be."""
    return maintenance_record(plan_maintenance(snapshot, hosts, options, deadline), snapshot)


def room_for(snapshot: Snapshot, vm: Vm, *, deadline: Deadline) -> RoomFound:
    """The fewest migrations found that let a VM start. Raises `UserError` of a VM that runs or starts."""
    if vm.host is not None:
        raise UserError(f"VM {vm.name} runs on host {host_name(vm.host, snapshot)} already")
    if expected := snapshot.pending_hosts.get(vm.id):
        raise UserError(f"VM {vm.name} is on its way to host {host_name(expected[0], snapshot)} already")
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
