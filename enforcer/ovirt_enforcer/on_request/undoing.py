"""Which migrations would undo what a plan has done, by the rules of today."""

from __future__ import annotations

import msgspec

from ovirt_enforcer.on_request.current_gates import current_gates
from ovirt_enforcer.on_request.documents import KeptVm, PlansBack
from ovirt_placement.answers.plans.obstacles import kept_text
from ovirt_placement.answers.plans.records import plans_record
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import connect
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import vm_name
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.undoing import Moved, Undoing, plan_back
from ovirt_placement.store.history import PlanRecord
from ovirt_placement.store.intents import IntentState
from ovirt_service.errors import UserError

_DEADLINE_SECONDS = 30.0


def way_back(config: Config, snapshot: Snapshot, record: PlanRecord) -> PlansBack:
    """The migrations, and which VMs stay where the plan took them. Raises `UserError`."""
    if record.cluster not in snapshot.cluster_by_id:
        raise UserError(f"plan {record.id}: its cluster {record.cluster} is no more")
    with connect(config.engine) as connection, current_gates(config, connection) as gates:
        held = gates.frozen(snapshot)
    deadline = Deadline.after(_DEADLINE_SECONDS)
    return _found(record, plan_back(snapshot, record.cluster, moved_by(record), held, deadline), snapshot)


def moved_by(record: PlanRecord) -> tuple[Moved, ...]:
    """What became of the VMs that a plan moved: where each began, and where the plan left it in the end."""
    found: dict[str, Moved] = {}
    for one in record.migrations:
        if one.state is IntentState.DONE and one.source is not None:
            began = found[one.vm].source if one.vm in found else one.source
            found[one.vm] = Moved(one.vm, began, one.target)
    return tuple(found.values())


def _found(record: PlanRecord, undoing: Undoing, snapshot: Snapshot) -> PlansBack:
    plans = plans_record([undoing.plan], snapshot)
    kept = (KeptVm(vm, vm_name(vm, snapshot), kept_text(why, snapshot)) for vm, why in undoing.kept.items())
    return PlansBack(**msgspec.structs.asdict(plans), undoes=record.id, kept=tuple(kept))
