"""Finds the ids that a search asks for and nothing else: the engine's database has an index on them."""

from __future__ import annotations

import re
import uuid

from ovirt_simulator.http.search.expression import Condition, Either, Expression

#: A UUID as the database reads one: in braces or not, with a dash behind any four digits or none.
_UUID = re.compile(r"(?:[0-9a-f]{4}-?){7}[0-9a-f]{4}|\{(?:[0-9a-f]{4}-?){7}[0-9a-f]{4}\}", re.IGNORECASE)


def is_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


def canonical(text: str) -> str:
    """Give what the small letters of an id are compared with; a state file may have ids that are no UUIDs."""
    return str(uuid.UUID(text)) if is_uuid(text) else text.lower()


def ids_in(where: Expression, object_name: str) -> frozenset[str] | None:
    """Return the ids of `id=a or id=b or ...` as they are compared; None for any other search."""
    ids, left = [], where
    while isinstance(left, Either):
        ids.append(_id_in(left.right, object_name))
        left = left.left
    ids.append(_id_in(left, object_name))
    return None if None in ids else frozenset(found for found in ids if found is not None)


def _id_in(where: Expression, object_name: str) -> str | None:
    if not isinstance(where, Condition) or where.field is None:
        return None
    if (where.object, where.field.name, where.relation) != (object_name, "ID", "="):
        return None
    # Words for nothing are left to the comparison of values.
    return canonical(where.value) if where.value.lower() not in ("", "null") else None
