"""Instance types: predefined, added, and those that VMs of the state file have, named like their ids."""

from __future__ import annotations

from werkzeug import Response

from ovirt_simulator.core.instance_type import InstanceType
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import element, text
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.resources.searching import searched
from ovirt_simulator.http.users import Permit

_MIB = 1 << 20
#: The memory of its VMs may grow to this many times as much.
_GROWTH = 4


def list_all(call: Call) -> list[str]:
    found = searched(call, "INSTANCETYPE", _known(call).values())
    return [_render(call, one, call.links("instancetypes", one.id)) for one in found]


def get(call: Call, type_id: str) -> str:
    return _render(call, present(_known(call).get(type_id)), call.links("instancetypes", type_id))


def post(call: Call) -> Response:
    body = call.body("instance_type")
    if not body.text("name"):
        raise incomplete("InstanceType", "name")
    call.need(Permit.CREATE_TEMPLATE)
    added = call.engine.instance_types.add(_read(body), caller=call.caller)
    return answers.document(_render(call, added, call.plain_links("instancetypes", added.id)), 201)


def delete(call: Call, type_id: str) -> Response:
    present(_known(call).get(type_id))
    call.need(Permit.DELETE_TEMPLATE)
    call.engine.instance_types.remove(type_id, caller=call.caller)
    return done()


def _known(call: Call) -> dict[str, InstanceType]:
    added = {one.id: one for one in call.queries.instance_types()}
    used = {vm.instance_type for vm in call.queries.vms() if vm.instance_type is not None}
    return added | {each: InstanceType(id=each, name=each) for each in sorted(used - added.keys())}


def _read(body: Body) -> InstanceType:
    memory, ha, cpu = body.integer("memory"), body.child("high_availability"), body.child("cpu")
    topology = None if cpu is None else cpu.child("topology")
    counts = {
        name: None if topology is None else topology.integer(name) for name in ("sockets", "cores", "threads")
    }
    return InstanceType(
        id="",
        name=body.text("name") or "",
        description=body.text("description") or "",
        ha=bool(ha and ha.boolean("enabled")),
        **{name: count for name, count in counts.items() if count is not None},
        **({} if memory is None else {"memory_mb": memory // _MIB}),
    )


def _render(call: Call, one: InstanceType, links: Links) -> str:
    """Render an instance type; of one that the state file knows by its id no more is known."""
    if all(known.id != one.id for known in call.queries.instance_types()):
        return links.entity("instance_type", one.id, text("name", one.name))
    topology = element(
        "topology",
        text("cores", one.cores),
        text("sockets", one.sockets),
        text("threads", one.threads),
    )
    return links.entity(
        "instance_type",
        one.id,
        text("name", one.name),
        text("description", one.description),
        element("cpu", topology),
        element("high_availability", text("enabled", one.ha), text("priority", one.priority)),
        text("memory", one.memory_mb * _MIB),
        element(
            "memory_policy",
            text("guaranteed", one.memory_mb * _MIB),
            text("max", _GROWTH * one.memory_mb * _MIB),
        ),
    )
