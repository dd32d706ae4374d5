"""Plans for a person in a process of its own, so that nobody else waits for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from ovirt_enforcer import configured
from ovirt_enforcer.on_request.documents import RoomFound
from ovirt_enforcer.on_request.maintenance_runs import in_order_of_plan
from ovirt_enforcer.on_request.planning import planned
from ovirt_enforcer.on_request.question import Asked, nothing_holds
from ovirt_enforcer.on_request.room import room_for
from ovirt_enforcer.subprocess_call import Call, CallFailed, preload
from ovirt_placement.answers.groups import foreseen as of_groups
from ovirt_placement.answers.keys import foreseen as of_keys
from ovirt_placement.answers.maintenance import ClusterMaintenance, maintenance_record
from ovirt_placement.answers.what_if import WhatIfDocument
from ovirt_placement.model import AffinityGroup, Snapshot, Vm
from ovirt_placement.planning.assignment import catalogue
from ovirt_placement.planning.assignment.catalogue import StrategyName
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.maintenance.data import MaintenanceOptions
from ovirt_placement.planning.maintenance.planner import plan_maintenance
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.problem.build_problem import Repair
from ovirt_placement.rules.failover.units import Domain
from ovirt_placement.store import keys as store
from ovirt_service.errors import UserError

#: A process that goes on for so much longer than its deadline hangs, and is ended.
_GRACE_SECONDS = 15.0
#: What is asked goes without the state, which goes along in fewer bytes.
_NO_STATE = Snapshot(clusters=(), hosts=(), vms=(), affinity_groups=(), affinity_labels=())

Result = TypeVar("Result")


class GroupChange(msgspec.Struct, frozen=True):
    """Groups that are to be gone, and others as they are meant to be."""

    gone: tuple[AffinityGroup, ...]
    meant: tuple[AffinityGroup, ...]
    conflicts: tuple[str, ...]
    repair: frozenset[Repair]


class KeyChange(msgspec.Struct, frozen=True):
    """Placement keys that are to be set and removed."""

    change: store.KeyChange
    repair: frozenset[Repair]


def prepare() -> None:
    """Have the first plan of this process wait for less."""
    preload(__name__)


def planned_apart(found: Asked, cluster: str, seconds: float, staying: Mapping[str, str]) -> Plan:
    """The plan of a cluster as `planned` makes it, by the configured strategy. Raises `UserError`."""
    name = catalogue.DEFAULT if found.settings is None else configured.strategy_name(found.settings)
    # What asks the gates is of this process.
    asked = replace(found, snapshot=_NO_STATE, not_now=nothing_holds, frozen_while_emptying=None)
    question = _Question(asked, cluster, name, seconds, staying)
    return _called(_planned, (msgspec.msgpack.encode(found.snapshot), question), seconds)


def room_apart(snapshot: Snapshot, vm: Vm, seconds: float) -> RoomFound:
    """Which migrations let a VM start, as `room_for` finds them. Raises `UserError`."""
    return _called(_room, (msgspec.msgpack.encode(snapshot), vm.id, seconds), seconds)


def groups_foreseen_apart(snapshot: Snapshot, change: GroupChange, seconds: float) -> WhatIfDocument:
    """What would come of a change of groups, as `foreseen` finds it. Raises `UserError`."""
    return _called(_foreseen, (msgspec.msgpack.encode(snapshot), change, seconds), seconds)


def keys_foreseen_apart(snapshot: Snapshot, change: KeyChange, seconds: float) -> WhatIfDocument:
    """What would come of a change of placement keys, likewise. Raises `UserError`."""
    return _called(_keys_foreseen, (msgspec.msgpack.encode(snapshot), change, seconds), seconds)


def maintenance_apart(
    found: Asked, hosts: Sequence[str], options: MaintenanceOptions, seconds: float
) -> ClusterMaintenance:
    """What a rolling maintenance of hosts of one cluster would be. Raises `UserError`."""
    question = msgspec.msgpack.encode(found.snapshot), tuple(hosts), options, seconds
    return _called(_maintenance, question, seconds)


def order_apart(
    snapshot: Snapshot,
    hosts: Sequence[str],
    stop_vms: Sequence[str],
    domains: tuple[Domain, ...],
    seconds: float,
) -> tuple[str, ...]:
    """The hosts in the order of fewest migrations, as `in_order_of_plan` finds it. Raises `UserError`."""
    question = msgspec.msgpack.encode(snapshot), tuple(hosts), tuple(stop_vms), domains, seconds
    order = _called(_order, question, seconds)
    if isinstance(order, str):
        raise UserError(order)
    return order


def _called(function: Callable[..., Result], arguments: tuple[Any, ...], seconds: float) -> Result:
    call = Call(function, arguments, seconds + _GRACE_SECONDS)
    try:
        call.wait()
        return call.result()
    except CallFailed as error:
        raise UserError(f"no plan was made: {error}") from None
    finally:
        call.cancel()


class _Question(msgspec.Struct, frozen=True):
    """What is asked of the process, besides the state."""

    found: Asked
    cluster: str
    strategy: StrategyName
    seconds: float
    staying: Mapping[str, str]


def _planned(snapshot: bytes, question: _Question) -> Plan:
    """Be the process."""
    found = replace(question.found, snapshot=msgspec.msgpack.decode(snapshot, type=Snapshot))
    strategy, deadline = catalogue.strategy(question.strategy), Deadline.after(question.seconds)
    return planned(found, question.cluster, strategy, deadline, question.staying)


def _foreseen(snapshot: bytes, change: GroupChange, seconds: float) -> WhatIfDocument:
    """Be the process."""
    state, deadline = msgspec.msgpack.decode(snapshot, type=Snapshot), Deadline.after(seconds)
    return of_groups.foreseen(
        state, change.gone, change.meant, change.conflicts, repair=change.repair, deadline=deadline
    )


def _keys_foreseen(snapshot: bytes, change: KeyChange, seconds: float) -> WhatIfDocument:
    """Be the process."""
    state, deadline = msgspec.msgpack.decode(snapshot, type=Snapshot), Deadline.after(seconds)
    return of_keys.foreseen(state, change.change, (), repair=change.repair, deadline=deadline)


def _room(snapshot: bytes, vm: str, seconds: float) -> RoomFound:
    """Be the process."""
    state = msgspec.msgpack.decode(snapshot, type=Snapshot)
    return room_for(state, state.vm_by_id[vm], seconds)


def _maintenance(
    snapshot: bytes, hosts: tuple[str, ...], options: MaintenanceOptions, seconds: float
) -> ClusterMaintenance:
    """Be the process."""
    state = msgspec.msgpack.decode(snapshot, type=Snapshot)
    plan = plan_maintenance(state, hosts, options, Deadline.after(seconds))
    return maintenance_record(plan, state)


def _order(
    snapshot: bytes,
    hosts: tuple[str, ...],
    stop_vms: tuple[str, ...],
    domains: tuple[Domain, ...],
    seconds: float,
) -> tuple[str, ...] | str:
    """Be the process; a text says why there is no order."""
    state = msgspec.msgpack.decode(snapshot, type=Snapshot)
    wanted = [state.host_by_id[host] for host in hosts]
    try:
        found = in_order_of_plan(state, wanted, stop_vms, domains, Deadline.after(seconds))
    except UserError as error:
        return str(error)
    return tuple(host.id for host in found)
