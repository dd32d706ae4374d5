"""What may stand between [ and ]."""

from __future__ import annotations

from .cursor import DEEPEST, Cursor, LetPass, Refused
from .escapes import read_escape


def read_class(cursor: Cursor, depth: int) -> None:
    """Read from behind the [ to behind its ]."""
    cursor.take("^")
    _read_members(cursor, depth)
    cursor.next()


def _read_members(cursor: Cursor, depth: int) -> None:
    """Read up to the ]: as long as there is no member, one is a member itself."""
    if depth > DEEPEST:
        raise LetPass
    empty = True
    while empty or cursor.peek() != "]":
        if not cursor.rest:
            raise Refused("an unclosed [")
        if cursor.take("["):
            read_class(cursor, depth + 1)
        elif cursor.take("&&"):
            if not _read_right_side(cursor, depth) and empty:
                raise Refused("a && without a class at either side")
        else:
            _read_range(cursor)
        empty = False


def _read_right_side(cursor: Cursor, depth: int) -> bool:
    """Read what follows &&; False where nothing does."""
    found = False
    while cursor.peek() not in {"]", "&"}:
        if cursor.take("["):
            read_class(cursor, depth + 1)
        else:
            _read_members(cursor, depth + 1)
        found = True
    return found


def _read_range(cursor: Cursor) -> None:
    first = _read_member(cursor)
    if first is None or cursor.peek() != "-" or cursor.peek(1) in {"[", "]", ""}:
        return
    cursor.next()
    last = _read_member(cursor)
    if last is None or (first and last and last < first):
        raise Refused("a range that ends before it begins")


def _read_member(cursor: Cursor) -> str | None:
    """A character of a class: empty if only Java knows it, None if it stands for several."""
    character = cursor.next()
    return read_escape(cursor, in_class=True) if character == "\\" else character
