"""Alternatives, groups and repetitions."""

from __future__ import annotations

import re

from .classes import read_class
from .cursor import DEEPEST, Cursor, LetPass, Refused
from .escapes import read_escape

_FLAGS = frozenset("imsducU")
_LARGEST = 2**31 - 1
_LONGEST_NUMBER = 10

_NAME = re.compile(r"<([A-Za-z][A-Za-z0-9]*)>")
_COUNT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_MODIFIERS = re.compile(r"([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")


def read_alternatives(cursor: Cursor, depth: int) -> None:
    """Read up to the end, or to a parenthesis that closes."""
    if depth > DEEPEST:
        raise LetPass
    while cursor.rest and cursor.peek() != ")":
        if not cursor.take("|"):
            _read_quantified(cursor, depth)


def _read_quantified(cursor: Cursor, depth: int) -> None:
    character = cursor.next()
    if character in "?*+":
        raise Refused(f"a {character} that repeats nothing")
    if character == "(":
        if not _read_group(cursor, depth):
            return
    elif character == "[":
        read_class(cursor, depth)
    elif character == "\\":
        read_escape(cursor, in_class=False)
    elif character == "{":
        cursor.back()
    _read_quantifier(cursor)


def _read_quantifier(cursor: Cursor) -> None:
    if cursor.peek() == "{":
        _read_count(cursor)
    elif not (cursor.take("?") or cursor.take("*") or cursor.take("+")):
        return
    _ = cursor.take("?") or cursor.take("+")


def _read_count(cursor: Cursor) -> None:
    count = cursor.match(_COUNT)
    if count is None:
        raise Refused("a { that begins no repetition, as {2,3} does; a plain one is \\{")
    least = _number(count[1])
    most = _number(count[3]) if count[3] else _LARGEST if count[2] else least
    if not least <= most <= _LARGEST:
        raise Refused(f"the repetition {count[0]}")


def _number(digits: str) -> int:
    """The number; of one that is too large, one that is too large."""
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) <= _LONGEST_NUMBER else _LARGEST + 1


def _read_group(cursor: Cursor, depth: int) -> bool:
    """Read a group; False for mere modifiers, which cannot be repeated."""
    if cursor.take("?") and not _read_opening(cursor):
        return False
    read_alternatives(cursor, depth + 1)
    if not cursor.take(")"):
        raise Refused("an unclosed (")
    return True


def _read_opening(cursor: Cursor) -> bool:
    """What follows `(?`; False where nothing but modifiers stands there."""
    if any(map(cursor.take, (":", "=", "!", ">", "<=", "<!"))):
        return True
    if cursor.peek() == "<":
        _read_name(cursor)
        return True
    found = cursor.match(_MODIFIERS)
    if found is None or set(found[1] + (found[2] or "")) - _FLAGS - {"x"}:
        raise Refused(f"(?{cursor.peek()}, which Java does not know")
    if "x" in found[1]:
        raise LetPass  # what follows is written in another manner
    cursor.flag_u |= "U" in found[1]
    return found[3] == ":"


def _read_name(cursor: Cursor) -> None:
    name = cursor.match(_NAME)
    if name is None:
        raise Refused("a group name that is not <Latin letters and digits>")
    if name[1] in cursor.names:
        raise Refused(f"a second group of the name {name[1]}")
    cursor.names.add(name[1])
