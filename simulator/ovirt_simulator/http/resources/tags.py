"""Tags, and those that a VM or host has."""

from __future__ import annotations

from collections.abc import Sequence

from werkzeug import Response

from ovirt_simulator.core.entities import ROOT_TAG, Tag
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import infrastructure
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import named, present, visible_vm
from ovirt_simulator.http.resources.hosts import visible_host
from ovirt_simulator.http.users import Permit


def list_tags(call: Call) -> list[str]:
    return [infrastructure.tag(tag, call.links("tags", tag.id)) for tag in _tags(call).values()]


def get_tag(call: Call, tag_id: str) -> str:
    return infrastructure.tag(present(_tags(call).get(tag_id)), call.links("tags", tag_id))


def list_of_vm(call: Call, vm_id: str) -> list[str]:
    tags = _named(call, visible_vm(call, vm_id).tags)
    return [infrastructure.tag(tag, call.links("vms", vm_id, "tags", tag.id)) for tag in tags.values()]


def list_of_host(call: Call, host_id: str) -> list[str]:
    tags = _named(call, visible_host(call, host_id).tags)
    return [infrastructure.tag(tag, call.links("hosts", host_id, "tags", tag.id)) for tag in tags.values()]


def post_tag(call: Call) -> Response:
    name = call.body("tag").text("name")
    if not name:
        raise incomplete("Tag", "name")
    call.need(Permit.TAG_MANAGEMENT)
    tag = call.engine.tags.add(name, caller=call.caller)
    return answers.document(infrastructure.tag(tag, call.plain_links("tags", tag.id)), 201)


def post_to_vm(call: Call, vm_id: str) -> Response:
    """Put the tag on a VM that the body names by its id or name."""
    body = call.body("tag")
    if body.id is None and not body.text("name"):
        raise incomplete("Tag", "id|name")
    call.need(Permit.TAG_MANAGEMENT)
    tag = call.engine.tags.attach(named(body, _tags(call).values()), vm_id, caller=call.caller)
    return answers.document(infrastructure.tag(tag, call.plain_links("vms", vm_id, "tags", tag.id)), 201)


def delete_of_vm(call: Call, vm_id: str, tag_id: str) -> Response:
    present(_named(call, present(call.queries.vm(vm_id)).tags).get(tag_id))
    call.need(Permit.TAG_MANAGEMENT)
    call.engine.tags.detach(tag_id, vm_id, caller=call.caller)
    return done()


def _tags(call: Call) -> dict[str, Tag]:
    """Give all tags by id, the root last."""
    return {tag.id: tag for tag in (*call.queries.tags(), ROOT_TAG)}


def _named(call: Call, names: Sequence[str]) -> dict[str, Tag]:
    """Give the tags with these names by id; VMs and hosts hold the names."""
    return {tag.id: tag for tag in call.queries.tags() if tag.name in names}
