"""What answers there is an engine: its collections, and entities that may be gone.

A web server before an engine answers 404 as well, and an answer can be wrong for a moment: an entity is gone
when it cannot be read by its id, and its collection does not list it either.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from lxml import etree

from ovirt_placement.engine.connection.client import (
    EngineAway,
    EngineConnection,
    EngineFault,
    EngineSetupError,
)
from ovirt_placement.engine.parsing import xml

NOTHING = f"<{xml.EMPTY}/>".encode()
#: Collections that can be searched for an id; of others all is read.
_SEARCHED = frozenset({"/vms", "/hosts"})


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


def get_collection(connection: EngineConnection, path: str, *follow: str) -> bytes:
    """Read a collection; one of which the engine itself says that it has none is as an empty one."""
    try:
        return connection.get(path, **({"follow": ",".join(follow)} if follow else {}))
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
    return _listed(connection, collection, identity, query)


def _listed(
    connection: EngineConnection, collection: str, identity: str, query: dict[str, str]
) -> bytes | None:
    search = {"search": f"id={identity}"} if collection in _SEARCHED else {}
    try:
        content = connection.get(collection, **search, **query)
    except EngineFault as fault:
        if fault.code == HTTPStatus.NOT_FOUND and fault.fault:
            return None
        raise
    with whole_answers(connection):
        found = [one for one in xml.root(content).iterchildren() if xml.identity(one) == identity]
    return etree.tostring(found[0]) if found else None
