"""Affinity labels: all of them, their members, and those of one VM or host."""

from __future__ import annotations

from werkzeug import Response

from ovirt_simulator.core.entities import AffinityLabel
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import affinity as render
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import present, visible_vm
from ovirt_simulator.http.resources.hosts import visible_host
from ovirt_simulator.http.users import Permit


def list_labels(call: Call) -> list[str]:
    call.need_admin()
    return [_render(call, label) for label in call.queries.affinity_labels()]


def get_label(call: Call, label_id: str, **_: str) -> str:
    """Give a label, below a VM or host as well, whether that has it or not: the engine looks no further."""
    return _render(call, _label(call, label_id))


def list_vms(call: Call, label_id: str) -> list[str]:
    return [render.member("vm", "vms", vm_id) for vm_id in _label(call, label_id).vms]


def list_hosts(call: Call, label_id: str) -> list[str]:
    return [render.member("host", "hosts", host_id) for host_id in _label(call, label_id).hosts]


def get_vm(call: Call, label_id: str, vm_id: str) -> str:
    return render.member("vm", "vms", present(vm_id if vm_id in _label(call, label_id).vms else None))


def get_host(call: Call, label_id: str, host_id: str) -> str:
    return render.member(
        "host", "hosts", present(host_id if host_id in _label(call, label_id).hosts else None)
    )


def list_of_vm(call: Call, vm_id: str) -> list[str]:
    call.need_admin()
    visible_vm(call, vm_id)
    return [_render(call, label) for label in call.queries.affinity_labels() if vm_id in label.vms]


def list_of_host(call: Call, host_id: str) -> list[str]:
    call.need_admin()
    visible_host(call, host_id)
    return [_render(call, label) for label in call.queries.affinity_labels() if host_id in label.hosts]


def post_label(call: Call) -> Response:
    body = call.body("affinity_label")
    name = body.text("name")
    if not name:
        raise incomplete("AffinityLabel", "name")
    call.need(Permit.TAG_MANAGEMENT)
    label = call.engine.labels.add(
        name,
        vms=body.ids("vms", "vm") or (),
        hosts=body.ids("hosts", "host") or (),
        implicit=bool(body.boolean("has_implicit_affinity_group")),
        caller=call.caller,
    )
    return answers.document(_populated(call, label), 201)


def put_label(call: Call, label_id: str) -> Response:
    _label(call, label_id)
    body = call.body("affinity_label")
    call.need(Permit.TAG_MANAGEMENT)
    label = call.engine.labels.edit(
        label_id,
        name=body.text("name"),
        vms=body.ids("vms", "vm"),
        hosts=body.ids("hosts", "host"),
        implicit=body.boolean("has_implicit_affinity_group"),
        caller=call.caller,
    )
    return answers.document(_populated(call, label))


def delete_label(call: Call, label_id: str) -> Response:
    call.need(Permit.TAG_MANAGEMENT)
    call.engine.labels.remove(label_id, caller=call.caller)
    return done()


def post_vm(call: Call, label_id: str) -> Response:
    vm_id = _member_id(call, "vm", "Vm")
    call.engine.labels.add_vm(label_id, vm_id, caller=call.caller)
    return answers.document(render.member("vm", "vms", vm_id))


def post_host(call: Call, label_id: str) -> Response:
    host_id = _member_id(call, "host", "Host")
    call.engine.labels.add_host(label_id, host_id, caller=call.caller)
    return answers.document(render.member("host", "hosts", host_id))


def delete_vm(call: Call, label_id: str, vm_id: str) -> Response:
    call.need(Permit.TAG_MANAGEMENT)
    call.engine.labels.remove_vm(label_id, vm_id, caller=call.caller)
    return done()


def delete_host(call: Call, label_id: str, host_id: str) -> Response:
    call.need(Permit.TAG_MANAGEMENT)
    call.engine.labels.remove_host(label_id, host_id, caller=call.caller)
    return done()


def post_to_vm(call: Call, vm_id: str) -> Response:
    """Give a VM a label: the same as adding it to the label, but answered with the label and 201."""
    label_id = _member_id(call, "affinity_label", "AffinityLabel")
    call.engine.labels.add_vm(label_id, vm_id, caller=call.caller)
    return answers.document(_populated(call, _label(call, label_id)), 201)


def post_to_host(call: Call, host_id: str) -> Response:
    label_id = _member_id(call, "affinity_label", "AffinityLabel")
    call.engine.labels.add_host(label_id, host_id, caller=call.caller)
    return answers.document(_populated(call, _label(call, label_id)), 201)


def _member_id(call: Call, tag: str, type_name: str) -> str:
    member_id = call.body(tag).id
    if member_id is None:
        raise incomplete(type_name, "id")
    call.need(Permit.TAG_MANAGEMENT)
    return member_id


def _label(call: Call, label_id: str) -> AffinityLabel:
    call.need_admin()
    return present(call.queries.affinity_label(label_id))


def _render(call: Call, label: AffinityLabel) -> str:
    return render.affinity_label(label, call.links("affinitylabels", label.id))


def _populated(call: Call, label: AffinityLabel) -> str:
    return render.affinity_label(label, call.plain_links("affinitylabels", label.id))
