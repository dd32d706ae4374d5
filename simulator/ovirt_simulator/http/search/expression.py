"""What a search says once it is read: conditions, what joins them, the order and the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from ovirt_simulator.http.search.fields import Field


class Condition(msgspec.Struct, frozen=True):
    """One comparison, `name=web*`; without a field, words that any free text field of the object may hold."""

    object: str
    field: Field | None
    relation: str
    value: str


class Both(msgspec.Struct, frozen=True):
    left: Expression
    right: Expression


class Either(msgspec.Struct, frozen=True):
    left: Expression
    right: Expression


Expression: TypeAlias = "Condition | Both | Either"


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """A search that has been read; `where` is None when it asks for all."""

    where: Expression | None = None
    sort: Field | None = None
    descending: bool = False
    #: Counted from 1.
    page: int = 1


def conditions(where: Expression | None) -> Iterator[Condition]:
    """Give the conditions of an expression, from left to right."""
    if isinstance(where, Condition):
        yield where
    elif where is not None:
        yield from conditions(where.left)
        yield from conditions(where.right)
