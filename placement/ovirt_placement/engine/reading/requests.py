"""What answers there is an engine: its collections, whole and by pages, and entities that may be gone.

What an answer lacks although it was to be followed, as in a recording of an engine, is asked for one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from itertools import count

from lxml import etree
from msgspec.structs import replace

from ovirt_placement.engine.connection.client import (
    EngineAway,
    EngineConnection,
    EngineFault,
    EngineSetupError,
)
from ovirt_placement.engine.parsing import followed, users, vms, xml
from ovirt_placement.engine.parsing.followed import of_host, of_vm
from ovirt_placement.engine.parsing.vms import FoundVm
from ovirt_placement.model import Host

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
            found = found_vms(connection, content, follow)
        if not found or found[0].id == first:
            return  # past the end, or of an engine that knows no pages
        first = first or found[0].id
        yield from found
        if len(found) < page:
            return


def ignored(content: bytes, follow: Iterable[str]) -> bool:
    """Whether nothing of what was to be followed is in the answer, not even an empty list."""
    names = [name.partition(".")[0].encode() for name in follow]
    return bool(names) and not any(b"<" + name in content for name in names)


def complete_host(connection: EngineConnection, host: Host, follow: Iterable[str]) -> Host:
    """Read what was to be followed of a host from its own collections."""
    path = f"/hosts/{host.id}"
    if "statistics" in follow and (found := _collection(connection, f"{path}/statistics")) is not None:
        host = of_host(found).put_on(host)
    if "tags" in follow:
        host = replace(host, tags=followed.tags(_collection(connection, f"{path}/tags")))
    return host


def found_vms(connection: EngineConnection, content: bytes, follow: Collection[str]) -> tuple[FoundVm, ...]:
    """Read VMs out of an answer, and what was to be followed of them from elsewhere if it is not there."""
    found = vms.read(content)
    if ignored(content, follow):
        return tuple(_complete_vm(connection, one, follow) for one in found)
    return found


def permission_ids(connection: EngineConnection, clusters: Iterable[str]) -> frozenset[str]:
    """Read the ids of the permissions that these clusters show."""
    shown = (_collection(connection, f"/clusters/{cluster}/permissions") for cluster in clusters)
    return frozenset().union(*(users.permission_ids(found) for found in shown if found is not None))


def _complete_vm(connection: EngineConnection, found: FoundVm, follow: Collection[str]) -> FoundVm:
    path, vm, grants = f"/vms/{found.id}", found.vm, found.grants
    if "statistics" in follow and vm.host is not None:
        statistics = _collection(connection, f"{path}/statistics")
        if statistics is not None:
            vm = of_vm(statistics).put_on(vm)
    if "tags" in follow:
        vm = replace(vm, tags=followed.tags(_collection(connection, f"{path}/tags")))
    if "nics" in follow:
        vm = replace(vm, nics=followed.nics(_collection(connection, f"{path}/nics")))
    if "disk_attachments.disk" in follow:
        vm = replace(vm, disks=followed.disks(_collection(connection, f"{path}/diskattachments")))
    if "permissions" in follow:
        grants = users.grants(_collection(connection, f"{path}/permissions"))
    return FoundVm(vm, grants)


def _collection(connection: EngineConnection, path: str) -> xml.Element | None:
    """Read a collection of one entity; None where the engine has none."""
    try:
        return xml.root(connection.get(path))
    except EngineFault as fault:
        if fault.code == HTTPStatus.NOT_FOUND:
            return None
        raise
