"""Reads VMs page by page: with what is followed of each, an answer about all would take too long."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import count

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.parsing.vms import FoundVm
from ovirt_placement.engine.reading import fallback
from ovirt_placement.engine.reading.requests import whole_answers

#: A longer answer would keep the engine and its reader from everything else for too long: of each VM
#: it looks up several things.
DETAILED = 500
#: One look-up for each VM.
MEASURED = 2500


def paged_vms(
    connection: EngineConnection, follow: Collection[str], page: int = DETAILED
) -> Iterator[FoundVm]:
    """Read all VMs, following these links, this many at a time; raises what `EngineConnection.get` raises.

    VMs that are created or removed meanwhile may shift others over the edge of a page: one may be missing.
    """
    first = None
    for number in count(1):
        with whole_answers(connection):
            content = connection.get("/vms", search=f"page {number}", max=page, follow=",".join(follow))
            found = fallback.found_vms(connection, content, follow)
        if not found or found[0].id == first:
            return  # past the end, or of an engine that knows no pages
        first = first or found[0].id
        yield from found
        if len(found) < page:
            return
