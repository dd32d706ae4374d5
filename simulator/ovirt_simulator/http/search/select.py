"""What a parsed search finds among records: conditions judged, order, page and limit applied."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from ovirt_simulator.http.search.grammar import Both, Condition, Expression, SearchError, parse
from ovirt_simulator.http.search.ids import ids_in

Record = TypeVar("Record")
Test = Callable[[Record], bool]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


class Field(msgspec.Struct, Generic[Record], frozen=True):
    """Something that records can be asked about.

    `read` gives a text, a number, a time, or several texts of which one must match (tags, for example).
    """

    read: Callable[[Record], Any]
    #: The type of its values: str, int, float or datetime.
    kind: type = str
    #: For an enumeration: all its words; others make a search invalid.
    words: frozenset[str] = frozenset()
    #: Whether words without a field are looked for here too.
    free: bool = False


class Searchable(msgspec.Struct, Generic[Record], frozen=True):
    """A type of entity that can be searched: its fields, and its order when none is asked for."""

    fields: dict[str, Field[Record]]
    order: str
    descending: bool = False


def select(
    records: Iterable[Record],
    searchable: Searchable[Record],
    search: str = "",
    *,
    case_sensitive: bool = False,
    limit: int | None = None,
) -> list[Record]:
    """Give the records that a search finds, in its order, at most `limit`; an invalid search finds none."""
    try:
        parsed = parse(search)
        found = list(records)
        if parsed.where is not None:
            test = _id_test(parsed.where, searchable, case_sensitive) or _test(
                parsed.where, searchable, case_sensitive
            )
            found = [record for record in found if test(record)]
        sort, descending = searchable.order, searchable.descending
        if parsed.sort is not None:
            sort, descending = parsed.sort, parsed.descending
        read = _field(searchable, sort).read
    except SearchError:
        return []
    tie = searchable.fields[searchable.order].read
    found.sort(key=lambda record: (_sort_key(read(record)), _sort_key(tie(record))), reverse=descending)
    if limit is None:
        return found
    return found[(parsed.page - 1) * limit : parsed.page * limit]


def _sort_key(value: Any) -> tuple[bool, Any]:
    if isinstance(value, tuple):
        value = value[0] if value else None
    return (value is not None, "" if value is None else value)


def _field(searchable: Searchable[Record], name: str) -> Field[Record]:
    try:
        return searchable.fields[name]
    except KeyError:
        raise SearchError(f"no field {name!r}") from None


def _id_test(where: Expression, searchable: Searchable[Record], case_sensitive: bool) -> Test[Record] | None:
    """Compare ids at once where a search asks for nothing else: it may name many of them."""
    ids, field = ids_in(where), searchable.fields.get("id")
    if ids is None or field is None or field.kind is not str:
        return None
    read = field.read
    if case_sensitive:
        return lambda record: read(record) in ids
    lower = {value.lower() for value in ids}
    return lambda record: read(record).lower() in lower


def _test(where: Expression, searchable: Searchable[Record], case_sensitive: bool) -> Test[Record]:
    if isinstance(where, Condition):
        if where.field is None:
            return _free_test(where.value, searchable, case_sensitive)
        return _condition_test(where, _field(searchable, where.field), case_sensitive)
    left = _test(where.left, searchable, case_sensitive)
    right = _test(where.right, searchable, case_sensitive)
    if isinstance(where, Both):
        return lambda record: left(record) and right(record)
    return lambda record: left(record) or right(record)


def _condition_test(condition: Condition, field: Field[Record], case_sensitive: bool) -> Test[Record]:
    if field.words and condition.value.lower() not in field.words:
        raise SearchError(f"{condition.value!r} is no {condition.field}")
    if field.kind is not str:
        wanted = _converted(condition.value, field.kind)
        compare = _COMPARE[condition.operator]
        return lambda record: (value := field.read(record)) is not None and compare(value, wanted)
    if condition.operator not in ("=", "!="):
        raise SearchError(f"{condition.field!r} has no {condition.operator!r}")
    matches = _pattern(condition.value, case_sensitive).fullmatch
    wanted_match = condition.operator == "="
    return lambda record: any(matches(value) for value in _texts(field.read(record))) == wanted_match


def _free_test(value: str, searchable: Searchable[Record], case_sensitive: bool) -> Test[Record]:
    matches = _pattern(f"*{value}*", case_sensitive).fullmatch
    reads = [field.read for field in searchable.fields.values() if field.free]
    return lambda record: any(matches(text) for read in reads for text in _texts(read(record)))


def _texts(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)


def _pattern(value: str, case_sensitive: bool) -> re.Pattern[str]:
    """Compile a value in which `*` stands for any text."""
    pattern = ".*".join(map(re.escape, value.split("*")))
    return re.compile(pattern, re.DOTALL if case_sensitive else re.DOTALL | re.IGNORECASE)


def _converted(value: str, kind: type) -> Any:
    try:
        if kind is datetime:
            moment = datetime.fromisoformat(value)
            return moment if moment.tzinfo else moment.astimezone()
        return kind(value)
    except ValueError:
        raise SearchError(f"{value!r} is no {kind.__name__}") from None
