"""Tags, added; those of a VM or host; and the tags that a VM is given and loses."""

from __future__ import annotations

from collections.abc import Sequence

from werkzeug import Response

from ovirt_simulator.core.entities import Tag
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import fault, incomplete
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import infrastructure
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import present, visible_vm
from ovirt_simulator.http.resources.hosts import visible_host
from ovirt_simulator.http.users import Permit


def list_tags(call: Call) -> list[str]:
    return [infrastructure.tag(tag, call.links("tags", tag.id)) for tag in call.queries.tags()]


def get_tag(call: Call, tag_id: str) -> str:
    tags = {tag.id: tag for tag in call.queries.tags()}
    return infrastructure.tag(present(tags.get(tag_id)), call.links("tags", tag_id))


def list_of_vm(call: Call, vm_id: str) -> list[str]:
    tags = _named(call, visible_vm(call, vm_id).tags)
    return [infrastructure.tag(tag, call.links("vms", vm_id, "tags", tag.id)) for tag in tags.values()]


def list_of_host(call: Call, host_id: str) -> list[str]:
    tags = _named(call, visible_host(call, host_id).tags)
    return [infrastructure.tag(tag, call.links("hosts", host_id, "tags", tag.id)) for tag in tags.values()]


def get_of_vm(call: Call, vm_id: str, tag_id: str) -> str:
    tag = present(_named(call, visible_vm(call, vm_id).tags).get(tag_id))
    return infrastructure.tag(tag, call.links("vms", vm_id, "tags", tag_id))


def get_of_host(call: Call, host_id: str, tag_id: str) -> str:
    tag = present(_named(call, visible_host(call, host_id).tags).get(tag_id))
    return infrastructure.tag(tag, call.links("hosts", host_id, "tags", tag_id))


def post_tag(call: Call) -> Response:
    name = call.body("tag").text("name")
    if not name:
        raise incomplete("Tag", "name")
    call.need(Permit.TAG_MANAGEMENT)
    tag = call.engine.access.add_tag(name, caller=call.caller)
    return answers.document(infrastructure.tag(tag, call.plain_links("tags", tag.id)), 201)


def post_to_vm(call: Call, vm_id: str) -> Response:
    """Put a tag on a VM, by its id or name."""
    body = call.body("tag")
    name = body.text("name")
    if body.id is None and not name:
        raise incomplete("Tag", "id|name")
    call.need(Permit.TAG_MANAGEMENT)
    tag_id = body.id or next((tag.id for tag in call.queries.tags() if tag.name == name), None)
    if tag_id is None:
        raise fault(404, f"Entity not found: {name}")
    tag = call.engine.access.attach_tag(tag_id, vm_id, caller=call.caller)
    return answers.document(infrastructure.tag(tag, call.plain_links("vms", vm_id, "tags", tag.id)), 201)


def delete_of_vm(call: Call, vm_id: str, tag_id: str) -> Response:
    call.need(Permit.TAG_MANAGEMENT)
    call.engine.access.detach_tag(tag_id, vm_id, caller=call.caller)
    return done()


def _named(call: Call, names: Sequence[str]) -> dict[str, Tag]:
    """Give the tags with these names by id; VMs and hosts hold the names."""
    return {tag.id: tag for tag in call.queries.tags() if tag.name in names}
