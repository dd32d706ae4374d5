"""Asks the engine who a search finds, and whether it is one: to a mistaken search it answers with nobody."""

from __future__ import annotations

from ovirt_placement.engine.connection.client import EngineConnection, EngineFault
from ovirt_placement.engine.parsing import xml
from ovirt_placement.engine.reading.requests import whole_answers
from ovirt_placement.model.placement_rules import MemberSearch, SearchOf

#: What comes before a search that finds nobody. All things have a name, so some are found, but where the rest
#: is no search: the engine's syntax check then fails, and its answer is an empty list with status 200.
_EVERYBODY = "name=*"
UNPARSED = f"the engine cannot parse it: it finds nobody, alone and after `{_EVERYBODY} or`"


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
