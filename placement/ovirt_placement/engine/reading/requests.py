"""What answers there is an engine: its collections, and entities that may be gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lxml import etree

from ovirt_placement.engine.connection.client import EngineConnection, EngineFault, EngineSetupError


@contextmanager
def whole_answers(connection: EngineConnection) -> Iterator[None]:
    """Say of broken XML what it means: something else than an engine answers."""
    try:
        yield
    except etree.XMLSyntaxError as error:
        raise EngineSetupError(f"{connection.url}: what answers there sends broken XML: {error}") from None


def get_collection(connection: EngineConnection, path: str, *follow: str) -> bytes:
    """Read a collection; one that this engine does not have is as an empty one."""
    found = get_present(connection, path, **({"follow": ",".join(follow)} if follow else {}))
    return b"<none/>" if found is None else found


def get_present(connection: EngineConnection, path: str, **query: str) -> bytes | None:
    """Read what may be gone; then None."""
    try:
        return connection.get(path, **query)
    except EngineFault as fault:
        if fault.code == 404:
            return None
        raise
