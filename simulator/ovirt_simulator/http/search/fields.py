"""What a field and an object of the engine's search are, and how the table of them is written down."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import msgspec

from ovirt_simulator.http.operating_systems import OPERATING_SYSTEMS
from ovirt_simulator.http.search import words
from ovirt_simulator.http.search.words import Words


class Kind(Enum):
    """What a field's values are, and so how a searched value is checked and compared."""

    #: Compared with `*` as a wildcard; the case counts if the request says so.
    TEXT = "text"
    #: One of a list of words, held as a number.
    WORD = "word"
    #: A name compared as it is, or `null` for none.
    NULLABLE = "nullable"
    INTEGER = "integer"
    DECIMAL = "decimal"
    #: A number that only the database checks.
    BIGINT = "bigint"
    #: True or false, which only the database checks.
    BOOLEAN = "boolean"
    UUID = "uuid"
    #: Anything else that is compared as it is.
    EXACT = "exact"
    #: Days, or hours, minutes and seconds: `1.12:00:00`.
    SPAN = "span"
    #: A date, `today`, `yesterday` or a day of the week, and then the midnight that it began with.
    DAY = "day"
    #: A date of which the engine checks one thing and reads another: words pass the check and fail then.
    DATE = "date"


EQUAL = frozenset({"=", "!="})
COMPARED = frozenset({"<", ">", "<=", ">=", "=", "!="})
TIMES = frozenset({"<", ">", "="})
LESS_OR_MORE = frozenset({"<", ">"})


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A field; without `relations` it can be named, but not compared."""

    name: str
    kind: Kind = Kind.TEXT
    relations: frozenset[str] | None = EQUAL
    words: Words = {}
    #: Whether words without a field are looked for here too.
    free: bool = False
    #: Hidden fields are not completed, and so not found behind `sortby` and a dot.
    hidden: bool = False


class SearchObject(msgspec.Struct, frozen=True):
    """Something that can be searched, or that a search of something else can name."""

    name: str
    fields: dict[str, Field]
    #: The words by which searches of this name other objects.
    references: frozenset[str] = frozenset()
    #: The fields that order what is found, unless the search says otherwise.
    order: tuple[str, ...] = ("NAME",)
    descending: bool = False


def split(listed: str) -> list[str]:
    return listed.upper().split()


def fields(kind: Kind, listed: str, relations: frozenset[str] | None = EQUAL) -> list[Field]:
    return [Field(name=name, kind=kind, relations=relations) for name in split(listed)]


def texts(listed: str) -> list[Field]:
    return [Field(name=name, free=True) for name in split(listed)]


def word(name: str, of: Words, relations: frozenset[str] = EQUAL) -> Field:
    return Field(name=name.upper(), kind=Kind.WORD, words=of, relations=relations)


def flags(listed: str) -> list[Field]:
    return [word(name, words.FLAG) for name in split(listed)]


QUOTA = Field(name="QUOTA", kind=Kind.NULLABLE, free=True)
#: Alone among words, the case of these counts.
OS = word("os", OPERATING_SYSTEMS)


def define(
    name: str,
    fields: Iterable[Field],
    references: str = "",
    order: str = "name",
    *,
    descending: bool = False,
) -> SearchObject:
    by_name = {field.name: field for field in fields}
    return SearchObject(
        name, by_name, frozenset(split(references)), tuple(split(order)), descending=descending
    )
