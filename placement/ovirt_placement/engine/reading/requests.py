"""What answers there is an engine: its collections, whole and by pages, and entities that may be gone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from itertools import count

from lxml import etree

from ovirt_placement.engine.connection.client import (
    EngineAway,
    EngineConnection,
    EngineFault,
    EngineSetupError,
)
from ovirt_placement.engine.parsing import vms, xml
from ovirt_placement.engine.parsing.vms import FoundVm

NOTHING = f"<{xml.EMPTY}/>".encode()
#: Collections that can be searched for an id; of others all is read.
_SEARCHED = frozenset({"/vms", "/hosts"})
#: A longer answer would keep the engine and its reader from everything else for too long: of each VM
#: it looks up several things.
DETAILED = 500
#: One look-up for each VM.
MEASURED = 2500


@contextmanager
def whole_answers(connection: EngineConnection) -> Iterator[None]:
    """Say of malformed XML what it means: something else than an engine answers."""
    try:
        yield
    except etree.XMLSyntaxError as error:
        if not error.lineno:  # no line was read: libxml2 has no other way to say that memory ran out
            raise MemoryError from error
        raise EngineSetupError(
            f"{connection.settings.address}: what answers there sends malformed XML: {error}"
        ) from None
    except xml.Unexpected as error:
        raise EngineAway(
            f"{connection.settings.address}: what answers there sends something else: {error}",
            request_sent=True,
        ) from None
    except xml.TooLarge as error:
        raise EngineSetupError(
            f"{connection.settings.address}: what answers there sends too much: {error}"
        ) from None


def get_collection(connection: EngineConnection, path: str, *follow: str, **query: str) -> bytes:
    """Read a collection; one of which the engine itself says that it has none is as an empty one."""
    try:
        return connection.get(path, **query, **({"follow": ",".join(follow)} if follow else {}))
    except EngineFault as fault:
        if fault.code == HTTPStatus.NOT_FOUND and fault.fault:
            return NOTHING
        raise


def get_entity(connection: EngineConnection, collection: str, identity: str, **query: str) -> bytes | None:
    """Read what may be gone: by its id, else as its collection lists it; None if that does not either."""
    try:
        return connection.get(f"{collection}/{identity}", **query)
    except EngineFault as fault:
        if fault.code != HTTPStatus.NOT_FOUND:
            raise
    search = {"search": f"id={identity}"} if collection in _SEARCHED else {}
    content = get_collection(connection, collection, **search, **query)
    with whole_answers(connection):
        found = [one for one in xml.root(content).iterchildren() if xml.identity(one) == identity]
    return etree.tostring(found[0]) if found else None


def read_fields(
    connection: EngineConnection, collection: str, identity: str, *names: str
) -> xml.Children | None:
    """Read these fields of a VM, host or cluster; None if the engine has none of this id."""
    name = collection[1:-1]
    with whole_answers(connection):
        content = get_entity(connection, collection, identity)
        if content is None:
            return None
        for found in xml.elements(content, name):
            return xml.children(found, *names)
    what = f"{collection}/{identity}: the answer holds no {'VM' if name == 'vm' else name}"
    raise EngineAway(f"{connection.settings.address}: {what}", request_sent=True)


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
            found = vms.read(content)
        if not found or found[0].id == first:
            return  # past the end, or of an engine that knows no pages
        first = first or found[0].id
        yield from found
        if len(found) < page:
            return
