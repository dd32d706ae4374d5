"""What the engine's own searches find: members of rules, what bears a tag, jobs that have not ended."""

from __future__ import annotations

from http import HTTPStatus

from ovirt_placement.engine.connection.client import EngineConnection, EngineFault
from ovirt_placement.engine.parsing import hosts, vms, xml
from ovirt_placement.engine.reading.requests import whole_answers
from ovirt_placement.model.placement_rules import MemberSearch, SearchOf

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
        found_vms = vms.read(connection.get("/vms", search=f"tag={tag}"))
        found_hosts = hosts.read(connection.get("/hosts", search=f"tag={tag}"))
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
