"""Tags, and those of a VM or host."""

from __future__ import annotations

from collections.abc import Sequence

from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import infrastructure
from ovirt_simulator.http.resources.find import present


def list_tags(call: Call) -> list[str]:
    return [infrastructure.tag(tag, call.links("tags", tag.id)) for tag in call.queries.tags()]


def get_tag(call: Call, tag_id: str) -> str:
    tags = {tag.id: tag for tag in call.queries.tags()}
    return infrastructure.tag(present(tags.get(tag_id)), call.links("tags", tag_id))


def tags_named(call: Call, names: Sequence[str], collection: str, owner_id: str) -> list[str]:
    """Render the tags that a VM or host has, at their addresses below it."""
    return [
        infrastructure.tag(tag, call.links(collection, owner_id, "tags", tag.id))
        for tag in call.queries.tags()
        if tag.name in names
    ]
