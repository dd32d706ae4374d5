"""Tags, and those of a VM or host."""

from __future__ import annotations

from collections.abc import Sequence

from ovirt_simulator.core.entities import Tag
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import infrastructure
from ovirt_simulator.http.resources.find import present, visible_vm
from ovirt_simulator.http.resources.hosts import visible_host


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


def _named(call: Call, names: Sequence[str]) -> dict[str, Tag]:
    """Give the tags with these names by id; VMs and hosts hold the names."""
    return {tag.id: tag for tag in call.queries.tags() if tag.name in names}
