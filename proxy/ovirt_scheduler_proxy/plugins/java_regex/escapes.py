"""What may stand behind a backslash."""

from __future__ import annotations

import re

from .cursor import Cursor, Refused
from .families import refuse_unknown

_CLASSES = frozenset("dDsSwWhHvV")
_OUTSIDE_CLASSES = frozenset("bBAGzZRX123456789")
_CHARACTERS = {"a": "\a", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

_PAIR = re.compile(r"u([dD][89abAB][0-9A-Fa-f]{2})\\u([dD][c-fC-F][0-9A-Fa-f]{2})")
_HEXADECIMAL = re.compile(r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]+)\}|u([0-9A-Fa-f]{4})")
_OCTAL = re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})")
_CONTROL = re.compile(r"c(.)", re.DOTALL)
_FAMILY = re.compile(r"[pP](?:\{([^}]+)\}|([^{]))", re.DOTALL)
_NAMED_CHARACTER = re.compile(r"N\{[^}]+\}")
_GROUP = re.compile(r"k<([A-Za-z][A-Za-z0-9]*)>")

_LARGEST = 0x10FFFF


def read_escape(cursor: Cursor, *, in_class: bool) -> str | None:
    """Read behind a backslash: the character meant, or None for a class or a place.

    The character is empty if only Java knows it.
    """
    if not cursor.rest:
        raise Refused("a \\ at the end")
    number = _number(cursor)
    if number is not None:
        return number
    if found := cursor.match(_FAMILY):
        refuse_unknown(found[1] or found[2], cursor.flag_u)
        return None
    if cursor.match(_NAMED_CHARACTER):
        return ""
    if cursor.peek() == "k" and not in_class:
        named = cursor.match(_GROUP)
        if named is None or named[1] not in cursor.names:
            raise Refused("a \\k of a group that is not there")
        return None
    return _in_class(cursor.next()) if in_class else _outside(cursor)


def _number(cursor: Cursor) -> str | None:
    """The character of an escape that writes it as a number."""
    if found := cursor.match(_PAIR):
        high, low = int(found[1], 16), int(found[2], 16)
        return chr(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF))
    if found := cursor.match(_HEXADECIMAL):
        digits = (found[1] or found[2] or found[3]).lstrip("0")
        if len(digits) > 6 or int(digits or "0", 16) > _LARGEST:
            raise Refused("a \\x{...} that is no character")
        return chr(int(digits or "0", 16))
    if found := cursor.match(_OCTAL):
        return chr(int(found[1], 8))
    if found := cursor.match(_CONTROL):
        return chr(ord(found[1]) ^ 64)
    return None


def _in_class(character: str) -> str | None:
    if character == "v":
        return "\v"  # the one character that it meant in the past, at either end of a range
    return None if character in _CLASSES else _character(character)


def _outside(cursor: Cursor) -> str | None:
    character = cursor.next()
    if character == "b":
        cursor.take("{g}")
    return None if character in _CLASSES | _OUTSIDE_CLASSES else _character(character)


def _character(character: str) -> str:
    if character in _CHARACTERS:
        return _CHARACTERS[character]
    if character.isascii() and character.isalnum():
        raise Refused(f"the escape \\{character}")
    return character
