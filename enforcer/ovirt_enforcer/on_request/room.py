"""Which migrations let a VM start that no host takes as things are."""

from __future__ import annotations

from ovirt_enforcer.on_request.documents import RefusingHost, RoomFound
from ovirt_placement.answers.plans.records import plan_record
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.names import host_name, named_host, named_vm
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.make_room import RoomPlan, make_room
from ovirt_placement.rules.sentences import sentence
from ovirt_service.errors import UserError


def room_for(snapshot: Snapshot, vm: Vm, seconds: float) -> RoomFound:
    """The fewest migrations that were found. Raises `UserError` of a VM that runs or starts."""
    if vm.host is not None:
        raise UserError(f"VM {vm.name} runs on host {host_name(vm.host, snapshot)} already")
    if expected := snapshot.pending_hosts.get(vm.id):
        raise UserError(f"VM {vm.name} is on its way to host {host_name(expected[0], snapshot)} already")
    return _found(make_room(snapshot, vm.id, deadline=Deadline.after(seconds)), snapshot)


def _found(room: RoomPlan, snapshot: Snapshot) -> RoomFound:
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
