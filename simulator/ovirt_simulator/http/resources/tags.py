"""Tags, added, changed and removed; and those that a VM or host is given and loses (of users see `held`)."""

from __future__ import annotations

from collections.abc import Sequence

from werkzeug import Response

from ovirt_simulator.core.entities import ROOT_TAG, Tag
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import fault, incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import infrastructure
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import present, visible_vm
from ovirt_simulator.http.resources.hosts import visible_host
from ovirt_simulator.http.users import Permit


def list_tags(call: Call) -> list[str]:
    return [infrastructure.tag(tag, call.links("tags", tag.id)) for tag in _tags(call).values()]


def get_tag(call: Call, tag_id: str) -> str:
    return infrastructure.tag(present(_tags(call).get(tag_id)), call.links("tags", tag_id))


def list_of_vm(call: Call, vm_id: str) -> list[str]:
    tags = named(call, visible_vm(call, vm_id).tags)
    return [infrastructure.tag(tag, call.links("vms", vm_id, "tags", tag.id)) for tag in tags.values()]


def list_of_host(call: Call, host_id: str) -> list[str]:
    tags = named(call, visible_host(call, host_id).tags)
    return [infrastructure.tag(tag, call.links("hosts", host_id, "tags", tag.id)) for tag in tags.values()]


def get_of_vm(call: Call, vm_id: str, tag_id: str) -> str:
    tag = present(named(call, visible_vm(call, vm_id).tags).get(tag_id))
    return infrastructure.tag(tag, call.links("vms", vm_id, "tags", tag_id))


def get_of_host(call: Call, host_id: str, tag_id: str) -> str:
    tag = present(named(call, visible_host(call, host_id).tags).get(tag_id))
    return infrastructure.tag(tag, call.links("hosts", host_id, "tags", tag_id))


def post_tag(call: Call) -> Response:
    """Add a tag, below the one that the body names by id or name, else below the root."""
    body = call.body("tag")
    name = body.text("name")
    if not name:
        raise incomplete("Tag", "name")
    call.need(Permit.TAG_MANAGEMENT)
    tag = call.engine.tags.add(
        name, description=body.text("description"), parent=_parent(call, body), caller=call.caller
    )
    return answers.document(infrastructure.tag(tag, call.plain_links("tags", tag.id)), 201)


def put_tag(call: Call, tag_id: str) -> Response:
    present(_tags(call).get(tag_id))
    body = call.body("tag")
    call.need(Permit.TAG_MANAGEMENT)
    tag = call.engine.tags.update(
        tag_id,
        name=body.text("name"),
        description=body.text("description"),
        parent=_parent(call, body),
        caller=call.caller,
    )
    return answers.document(infrastructure.tag(tag, call.plain_links("tags", tag.id)))


def delete_tag(call: Call, tag_id: str) -> Response:
    present(_tags(call).get(tag_id))
    call.need(Permit.TAG_MANAGEMENT)
    call.engine.tags.remove(tag_id, caller=call.caller)
    return done()


def post_to_vm(call: Call, vm_id: str) -> Response:
    tag = call.engine.tags.attach(wanted_tag(call), vm_id, caller=call.caller)
    return answers.document(infrastructure.tag(tag, call.plain_links("vms", vm_id, "tags", tag.id)), 201)


def post_to_host(call: Call, host_id: str) -> Response:
    tag = call.engine.tags.attach_to_host(wanted_tag(call), host_id, caller=call.caller)
    return answers.document(infrastructure.tag(tag, call.plain_links("hosts", host_id, "tags", tag.id)), 201)


def delete_of_vm(call: Call, vm_id: str, tag_id: str) -> Response:
    present(named(call, present(call.queries.vm(vm_id)).tags).get(tag_id))
    call.need(Permit.TAG_MANAGEMENT)
    call.engine.tags.detach(tag_id, vm_id, caller=call.caller)
    return done()


def delete_of_host(call: Call, host_id: str, tag_id: str) -> Response:
    present(named(call, present(call.queries.host(host_id)).tags).get(tag_id))
    call.need(Permit.TAG_MANAGEMENT)
    call.engine.tags.detach_from_host(tag_id, host_id, caller=call.caller)
    return done()


def wanted_tag(call: Call) -> str:
    """Give the id of the tag that the body names by its id or name."""
    body = call.body("tag")
    name = body.text("name")
    if body.id is None and not name:
        raise incomplete("Tag", "id|name")
    call.need(Permit.TAG_MANAGEMENT)
    return body.id or _by_name(call, name or "")


def _parent(call: Call, body: Body) -> str | None:
    parent = body.child("parent")
    if parent is None:
        return None
    name = parent.text("name")
    return parent.id if name is None else _by_name(call, name)


def _by_name(call: Call, name: str) -> str:
    for tag in _tags(call).values():
        if tag.name == name:
            return tag.id
    raise fault(404, f"Entity not found: {name}")


def _tags(call: Call) -> dict[str, Tag]:
    """Give all tags by id, the root last."""
    return {tag.id: tag for tag in (*call.queries.tags(), ROOT_TAG)}


def named(call: Call, names: Sequence[str]) -> dict[str, Tag]:
    """Give the tags with these names by id; VMs and hosts hold the names."""
    return {tag.id: tag for tag in call.queries.tags() if tag.name in names}
