"""Finds the ids that a search asks for and nothing else: the engine's database has an index on them."""

from __future__ import annotations

from ovirt_simulator.http.search.expression import Condition, Either, Expression


def ids_in(where: Expression, object_name: str) -> frozenset[str] | None:
    """Return the ids of `id=a or id=b or ...` in lower case; None for any other search."""
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
    # Words for nothing, and what no id can be, are left to the comparison of values.
    return where.value.lower() if where.value.lower() not in ("", "null") and "*" not in where.value else None
