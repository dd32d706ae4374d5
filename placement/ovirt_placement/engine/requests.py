"""What answers there is an engine: collections, whole and by pages, entities that may be gone, searches."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from itertools import count

from lxml import etree

from ovirt_placement.engine import xml
from ovirt_placement.engine.clusters import parse_hosts
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineAway, EngineFault, EngineSetupError
from ovirt_placement.engine.vms import FoundVm, parse_vms
from ovirt_placement.model.placement_rules import MemberSearch, SearchOf

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
            found = parse_vms(content)
        if not found or found[0].id == first:
            return  # past the end, or of an engine that knows no pages
        first = first or found[0].id
        yield from found
        if len(found) < page:
            return


# The engine's own searches: members of rules, what bears a tag, jobs that have not ended.

#: What comes before a search that finds nobody. All things have a name, so some are found, but where the rest
#: is no search: the engine's syntax check then fails, and its answer is an empty list with status 200.
_EVERYBODY = "name=*"
UNPARSED = f"the engine cannot parse it: it finds nothing, alone and after `{_EVERYBODY} or`"
_NOT_FOR_THIS_USER = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN})


def search_members(connection: EngineConnection, of: SearchOf, text: str) -> MemberSearch:
    """Return who it finds, or why the engine gives no answer.

    Raises what `EngineConnection.get` raises, but for a refusal of the engine's: a problem of this search.
    """
    try:
        found = _found(connection, of, text)
        if not found and not _is_parsed(connection, of, text):
            return MemberSearch(of=of, text=text, problem=UNPARSED)
    except EngineFault as fault:
        return MemberSearch(of=of, text=text, problem=str(fault))
    return MemberSearch(of=of, text=text, found=found)


def _is_parsed(connection: EngineConnection, of: SearchOf, text: str) -> bool:
    """Whether it is a search, though it finds nobody; an engine that has nobody at all cannot show that."""
    if _found(connection, of, f"{_EVERYBODY} or {text}", max=1):
        return True
    return not _found(connection, of, _EVERYBODY, max=1)


def _found(connection: EngineConnection, of: SearchOf, text: str, **query: int) -> tuple[str, ...]:
    with whole_answers(connection):
        content = connection.get(f"/{of}", search=text, **query)
        return tuple(sorted(map(xml.identity, xml.root(content).iterchildren())))


def tagged_ids(connection: EngineConnection, tag: str) -> frozenset[str]:
    """Return the ids of the VMs and hosts that bear this tag; `*` in it stands for anything.

    Raises what `EngineConnection.get` raises.
    """
    with whole_answers(connection):
        found_vms = parse_vms(connection.get("/vms", search=f"tag={tag}"))
        found_hosts = parse_hosts(connection.get("/hosts", search=f"tag={tag}"))
        return frozenset(one.id for one in found_vms).union(one.id for one in found_hosts)


def is_working(connection: EngineConnection, correlation_id: str) -> bool:
    """Whether a command with this correlation id has begun and not ended.

    The engine makes a command's job before it waits for locks, validates and schedules, and shows the
    correlation id of none: it can only be searched for. Of a user who may not search jobs, nothing is known.
    Raises what else `EngineConnection.get` raises.
    """
    try:
        content = connection.get("/jobs", search=f"correlation_id={correlation_id}")
    except EngineFault as fault:
        if fault.code in _NOT_FOR_THIS_USER:
            return False
        raise
    with whole_answers(connection):
        return any(job.findtext("status") == "started" for job in xml.elements(content, "job"))
