"""Reads how busy hosts and VMs are. The engine looks each of them up by itself, so VMs come in pages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from ovirt_placement.engine import unfollowed
from ovirt_placement.engine.connection import EngineConnection
from ovirt_placement.engine.parsing import vms
from ovirt_placement.engine.reader import read_hosts, whole_answers
from ovirt_placement.model import Host, Vm

#: A longer answer would keep the engine, and whoever parses it, from everything else for too long.
_PAGE = 500
_FOLLOW = ("statistics",)


def measured_hosts(connection: EngineConnection) -> tuple[Host, ...]:
    """Read all hosts with their statistics; raises what `EngineConnection.get` raises."""
    with whole_answers(connection):
        return read_hosts(connection, statistics=True)


def measured_vms(connection: EngineConnection) -> Iterator[Vm]:
    """Read VMs with their statistics, page by page; raises what `EngineConnection.get` raises.

    VMs that are created or removed meanwhile may shift others over the edge of a page: one may be missing.
    """
    first = None
    for number in count(1):
        with whole_answers(connection):
            content = connection.get("/vms", search=f"page {number}", max=_PAGE, follow=",".join(_FOLLOW))
            found = vms.read(content)
        if not found or found[0].id == first:
            return  # past the end, or of an engine that knows no pages
        first = first or found[0].id
        if unfollowed.ignored(content, _FOLLOW):
            found = tuple(unfollowed.complete_vm(connection, vm, _FOLLOW) for vm in found)
        yield from found
        if len(found) < _PAGE:
            return
