"""Finds the ids that a search asks for and nothing else: the engine's database has an index on them."""

from __future__ import annotations

from ovirt_simulator.http.search.grammar import Condition, Either, Expression


def ids_in(where: Expression) -> frozenset[str] | None:
    """Return the ids of `id=a or id=b or ...` as they are written; None for any other search."""
    ids, left = [], where
    while isinstance(left, Either):
        ids.append(_id_in(left.right))
        left = left.left
    ids.append(_id_in(left))
    return None if None in ids else frozenset(found for found in ids if found is not None)


def _id_in(where: Expression) -> str | None:
    if not isinstance(where, Condition) or (where.field, where.operator) != ("id", "="):
        return None
    # Of other texts more may match than the same in another case.
    return where.value if where.value.isascii() and "*" not in where.value else None
