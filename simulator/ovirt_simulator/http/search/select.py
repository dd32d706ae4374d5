"""What a search finds among records: conditions judged, order, page and limit applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from ovirt_simulator.core.queries import Queries
from ovirt_simulator.http.search.errors import SearchError, SearchFailure, invalid
from ovirt_simulator.http.search.expression import Expression, Search, conditions
from ovirt_simulator.http.search.fields import Field, Kind, SearchObject
from ovirt_simulator.http.search.ids import ids_in, is_uuid
from ovirt_simulator.http.search.judging import Judge
from ovirt_simulator.http.search.known import Known
from ovirt_simulator.http.search.malformed_sql import refuse_malformed_sql
from ovirt_simulator.http.search.objects import OBJECTS
from ovirt_simulator.http.search.parse import parse
from ovirt_simulator.http.search.rows import Rows

Record = TypeVar("Record")

_NO_LIMIT = 2**31 - 1


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a list request asks for: the search, and how it is to be taken."""

    text: str
    case_sensitive: bool = False
    #: At most this many; None for all.
    limit: int | None = None


def select(
    records: Iterable[Record], object_name: str, asked: Request, queries: Queries, known: Known
) -> list[Record]:
    """Give the records that a search finds, in its order; a search that makes no sense finds none.

    Raises `SearchFailure` for what the engine's database fails on.
    """
    limit = _NO_LIMIT if asked.limit is None else asked.limit
    if limit < 0:
        raise SearchFailure(f"Illegal max count value for query : {limit}")
    try:
        search = parse(asked.text, object_name)
    except SearchError:
        return []
    rows = Rows(object_name, search.where, queries, known)
    found = list(records)
    # Events have numbers, and name what has ids.
    _refuse_what_is_no_id(search.where, queries.hosts() if object_name == "EVENT" else found)
    refuse_malformed_sql(asked.text, object_name, search)
    if search.page == 0 and limit > 0:
        raise SearchFailure("ERROR: OFFSET must not be negative")
    if search.where is not None:
        test = _id_test(search.where, object_name, rows) or _test(search.where, asked, rows, queries)
        found = [record for record in found if test(record)]
    _sort(found, OBJECTS[object_name], search, rows)
    return found[(search.page - 1) * limit : search.page * limit] if limit else []


def _refuse_what_is_no_id(where: Expression | None, records: Iterable[Any]) -> None:
    """Refuse what is no UUID as the database does; a state file may have other ids, and then they count."""
    others = [
        one.value
        for one in conditions(where)
        if one.field is not None and one.field.kind is Kind.UUID and one.value.lower() not in ("", "null")
        if not is_uuid(one.value)
    ]
    if others and ("*" in others[0] or all(is_uuid(record.id) for record in records)):
        raise invalid("uuid", others[0])


def _test(where: Expression, asked: Request, rows: Rows, queries: Queries) -> Callable[[Any], bool]:
    judge = Judge(rows, queries, case_sensitive=asked.case_sensitive).judge(where)
    return lambda record: any(judge(row) for row in rows.of(record))


def _id_test(where: Expression, object_name: str, rows: Rows) -> Callable[[Any], bool] | None:
    """Compare ids at once where a search asks for nothing else: it may name many of them."""
    ids = ids_in(where, object_name)
    if ids is None:
        return None
    read = rows.columns["ID"]
    return lambda record: read(record).lower() in ids


def _sort(found: list[Any], searched: SearchObject, search: Search, rows: Rows) -> None:
    # Simulated events share moments, which an engine's never do: in the order of time, ids follow it.
    by_time = search.sort is not None and search.sort.name == "TIME"
    for name in reversed(searched.order):
        read = rows.columns.get(name, lambda _: None)
        reverse = search.descending if by_time else searched.descending
        found.sort(key=_key(read, searched.fields.get(name)), reverse=reverse)
    if search.sort is not None:
        read = rows.columns.get(search.sort.name, lambda _: None)
        found.sort(key=_key(read, search.sort), reverse=search.descending)


def _key(read: Callable[[Any], Any], field: Field | None) -> Callable[[Any], tuple[bool, Any]]:
    """Order as the database does: what is empty first, words by their numbers."""

    def key(record: Any) -> tuple[bool, Any]:
        value = read(record)
        if field is not None and field.kind is Kind.WORD and value is not None:
            value = field.words.get(str(value).lower(), 0)
        return (value is not None, 0 if value is None else value)

    return key
