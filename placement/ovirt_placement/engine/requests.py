"""What answers there is an engine: collections, whole and by pages, entities that may be gone, searches.

Engines, and what stands before them, have been known to list nothing for a moment: an answer that suddenly
lacks most of what was known is believed once the next one says the same.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from itertools import count
from typing import Final, TypeVar

from lxml import etree

from ovirt_placement.engine import xml
from ovirt_placement.engine.clusters import parse_hosts
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineAway, EngineFault, EngineSetupError
from ovirt_placement.engine.vms import FoundVm, parse_vms
from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import MemberSearch, SearchOf

_Found = TypeVar("_Found")

NOTHING = f"<{xml.EMPTY}/>".encode()
#: Collections that can be searched for an id; of others all is read.
_SEARCHED = frozenset({"/vms", "/hosts"})
#: A longer answer would keep the engine and its reader from everything else for too long: of each VM
#: it looks up several things.
DETAILED = 500
#: One look-up for each VM.
MEASURED = 2500


@contextmanager
def permitted(connection: EngineConnection, what: str, permit: str) -> Iterator[None]:
    """Say of a change that the engine does not let its user make, which permit that needs."""
    try:
        yield
    except EngineFault as fault:
        if fault.code != HTTPStatus.FORBIDDEN:
            raise
        raise EngineSetupError(
            f"{connection.settings.username} may not {what}: it needs the permit {permit}"
        ) from None


def read_collection(
    connection: EngineConnection,
    path: str,
    parse: Callable[[bytes], _Found],
    *follow: str,
    **query: str | int,
) -> _Found:
    """Read a collection; one of which the engine itself says that it has none is as an empty one."""
    try:
        return connection.read(path, parse, **query, **({"follow": ",".join(follow)} if follow else {}))
    except EngineFault as fault:
        if fault.code == HTTPStatus.NOT_FOUND and fault.fault:
            return parse(NOTHING)
        raise


def read_entity(
    connection: EngineConnection,
    collection: str,
    identity: str,
    parse: Callable[[bytes], _Found],
    **query: str,
) -> _Found | None:
    """Read what may be gone: by its id, else as its collection lists it; None if that does not either."""
    try:
        return connection.read(f"{collection}/{identity}", parse, **query)
    except EngineFault as fault:
        if fault.code != HTTPStatus.NOT_FOUND:
            raise

    def find(content: bytes) -> bytes | None:
        found = [one for one in xml.root(content).iterchildren() if xml.identity(one) == identity]
        return etree.tostring(found[0]) if found else None

    search = {"search": f"id={identity}"} if collection in _SEARCHED else {}
    content = read_collection(connection, collection, find, **search, **query)
    return None if content is None else connection.parsed(content, parse)


def read_fields(
    connection: EngineConnection, collection: str, identity: str, *names: str
) -> xml.Children | None:
    """Read these fields of a VM, host or cluster; None if the engine has none of this id."""

    def parse(content: bytes) -> xml.Children:
        return xml.children(xml.entity(content, collection[1:-1]), *names)

    return read_entity(connection, collection, identity, parse)


def paged_vms(
    connection: EngineConnection, follow: Collection[str], page: int = DETAILED
) -> Iterator[FoundVm]:
    """Read all VMs, following these links, this many at a time.

    VMs that are created or removed meanwhile may shift others over the edge of a page: one may be missing.
    """
    first = None
    for number in count(1):
        links = ",".join(follow)
        found = connection.read("/vms", parse_vms, search=f"page {number}", max=page, follow=links)
        if not found or found[0].id == first:
            return  # past the end, or of an engine that knows no pages
        first = first or found[0].id
        yield from found
        if len(found) < page:
            return


# The engine's own searches: members of rules, what bears a tag, jobs that have not ended.

#: What comes before a search that finds nothing. All things have a name, so some are found, but where the
#: rest is no search: the engine's syntax check then fails, and its answer is an empty list with status 200.
_EVERYBODY = "name=*"
UNPARSED = f"the engine cannot parse it: it finds nothing, alone and after `{_EVERYBODY} or`"
_NOT_FOR_THIS_USER = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN})


def search_members(connection: EngineConnection, of: SearchOf, text: str) -> MemberSearch:
    """Return who it finds, or why the engine gives no answer: its refusal is a problem of this search."""
    try:
        found = _found(connection, of, text)
        if not found and not _is_parsed(connection, of, text):
            return MemberSearch(of=of, text=text, problem=UNPARSED)
    except EngineFault as fault:
        return MemberSearch(of=of, text=text, problem=str(fault))
    return MemberSearch(of=of, text=text, found=found)


def _is_parsed(connection: EngineConnection, of: SearchOf, text: str) -> bool:
    """Whether it is a search, though it finds nothing; an engine that has nothing at all cannot show that."""
    if _found(connection, of, f"{_EVERYBODY} or {text}", max=1):
        return True
    return not _found(connection, of, _EVERYBODY, max=1)


def _found(connection: EngineConnection, of: SearchOf, text: str, **query: int) -> tuple[str, ...]:
    return connection.read(f"/{of}", _ids, search=text, **query)


def _ids(content: bytes) -> tuple[str, ...]:
    return tuple(sorted(map(xml.identity, xml.root(content).iterchildren())))


def tagged_ids(connection: EngineConnection, tag: str) -> frozenset[str]:
    """Return the ids of the VMs and hosts that bear this tag; `*` in it stands for anything."""
    search = f"tag={tag}"
    found = connection.read("/vms", parse_vms, search=search)
    hosts = connection.read("/hosts", parse_hosts, search=search)
    return frozenset(one.id for one in found) | {one.id for one in hosts}


def is_working(connection: EngineConnection, correlation_id: str) -> bool:
    """Whether a command with this correlation id has begun and not ended.

    The engine makes a command's job before it waits for locks, validates and schedules, and shows the
    correlation id of none: it can only be searched for. Of a user who may not search jobs, nothing is known.
    """

    def parse(content: bytes) -> bool:
        return any(job.findtext("status") == "started" for job in xml.elements(content, "job"))

    try:
        return connection.read("/jobs", parse, search=f"correlation_id={correlation_id}")
    except EngineFault as fault:
        if fault.code in _NOT_FOR_THIS_USER:
            return False
        raise


#: This many may go at once without a doubt, as long as not all of them do.
_FEW: Final = 2

#: What there is of each kind, by the word for it.
Kinds = Mapping[str, Collection[str]]
_GROUPS, _LABELS = "affinity groups", "affinity labels"
#: What a user may well remove all of: a second reading at once shows whether that is so.
RULES: Final = frozenset({_GROUPS, _LABELS})
_log = logging.getLogger(__name__)


class Implausible(EngineAway):
    """What an answer lacks was there a moment ago; asking again shows which is true."""

    def __init__(self, text: str, kinds: Collection[str]) -> None:
        super().__init__(text, request_sent=True)
        #: What there was most of.
        self.kinds = frozenset(kinds)


class Doubts:
    """Compares each answer with the one before; for one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[str, frozenset[str]] = {}
        self._doubted: frozenset[str] = frozenset()

    def confirm(
        self,
        read: Callable[[], _Found],
        kinds: Callable[[_Found], Kinds],
        at_once: Callable[[Implausible], bool] = lambda _: True,
    ) -> _Found:
        """Read, and where that is doubted, and `at_once` says so, read again. Raises as `check` does."""
        found = read()
        try:
            self.check(kinds(found))
        except Implausible as doubt:
            if not at_once(doubt):
                raise
            _log.info("%s", doubt)
            found = read()
            self.check(kinds(found))
        return found

    def check(self, found: Kinds) -> None:
        """Take an answer; kinds that it says nothing of stay as they were.

        Raises `Implausible` if most of a kind is missing, and was not missing in the last answer already.
        """
        lacking = {kind: text for kind in found if (text := self._lost(kind, found[kind]))}
        if lacking.keys() - self._doubted:
            self._doubted |= lacking.keys()
            raise Implausible(
                f"the engine suddenly lists but {', '.join(lacking.values())}: it is asked again before that"
                " is believed",
                lacking,
            )
        self._known |= {kind: frozenset(ids) for kind, ids in found.items()}
        self._doubted -= found.keys()

    def _lost(self, kind: str, ids: Collection[str]) -> str:
        known = self._known.get(kind, frozenset())
        left = len(known.intersection(ids))
        lost = len(known) - left
        most = bool(known) and (left == 0 or (lost > left and lost > _FEW))
        return f"{left} of {len(known)} {kind} that it had" if most else ""


def kinds_of(snapshot: Snapshot) -> Kinds:
    """What a reading of everything must not lose at once."""
    return {
        "clusters": [cluster.id for cluster in snapshot.clusters],
        "hosts": [host.id for host in snapshot.hosts],
        "VMs": [vm.id for vm in snapshot.vms],
        _GROUPS: [group.id for group in snapshot.affinity_groups],
        _LABELS: [label.id for label in snapshot.affinity_labels],
    }
