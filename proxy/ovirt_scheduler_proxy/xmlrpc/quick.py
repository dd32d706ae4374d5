"""Reads the calls that the engine really sends, by splitting text: several times faster than any XML parser.

It knows the few shapes of the engine's arguments and gives up on everything else, which is then parsed in
full. What it accepts is well-formed and means the same to the full parser: nothing but the tags that it
looks for may contain a "<", and references, comments and declarations may not occur at all: nor may the
characters that these begin or end with, since single bytes are found ten times faster than two in a row.
"""

from __future__ import annotations

import re
from typing import Any

_SPACE = " \t\n"
_CONTROLS = bytes(range(32)).translate(None, b"\t\n")

_START = re.compile(
    r"<\?xml version=(?:'1\.0'|\"1\.0\")(?: encoding=(?:'UTF-8'|\"UTF-8\"))?\?>[ \t\n]*"
    r"<methodCall(?: xmlns:ex=\"http://ws\.apache\.org/xmlrpc/namespaces/extensions\")?>[ \t\n]*"
    r"<methodName>([A-Za-z]+)</methodName>[ \t\n]*<params>[ \t\n]*<param>"
)
_BETWEEN = re.compile(r"</param>[ \t\n]*<param>")
_END = re.compile(r"</param>[ \t\n]*</params>[ \t\n]*</methodCall>[ \t\n]*")

_LONGEST_END = 200

_TEXT = r"<value>(?:<string>([^<]*)</string>|([^<]*))</value>"
_MEMBER = re.compile(rf"[ \t\n]*<member>[ \t\n]*<name>([^<]*)</name>[ \t\n]*{_TEXT}[ \t\n]*</member>[ \t\n]*")
_PAIR = re.compile(
    rf"[ \t\n]*<value><array><data>[ \t\n]*{_TEXT}[ \t\n]*"
    r"<value><(int|i4)>(-?[0-9]{1,10})</\3></value>[ \t\n]*</data></array></value>[ \t\n]*"
)


def read(body: bytes) -> tuple[str, list[Any]] | None:
    """The method and its parameters; None for a call that needs the full parser."""
    text = _plain_text(body)
    start = _START.match(text) if text else None
    if start is None:
        return None
    last = text.rfind("</param>", max(start.end(), len(text) - _LONGEST_END))
    if last < 0 or not _END.fullmatch(text, last):
        return None
    values = []
    for piece in _BETWEEN.split(text[start.end() : last]):
        value = _value(piece.strip(_SPACE))
        if value is None:
            return None
        values.append(value)
    return start[1], values


def _plain_text(body: bytes) -> str:
    """The text of a body that holds nothing but tags and characters; empty for all others."""
    # References, declarations, the end of a CDATA section, and in UTF-8 the characters that XML cannot hold.
    if b"&" in body or b"!" in body or b"]" in body or b"\xef" in body:
        return ""
    if len(body.translate(None, _CONTROLS)) != len(body):
        return ""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return ""


def _value(piece: str) -> Any:
    """A text, a list of texts, a list of pairs, or a map of texts; None for anything else."""
    if piece.startswith("<value><array><data>") and piece.endswith("</data></array></value>"):
        return _list(piece[20:-23].strip(_SPACE))
    if piece.startswith("<value><struct>") and piece.endswith("</struct></value>"):
        members = _sequence(_MEMBER, piece[15:-17])
        return None if members is None else {found[1]: found[2] or found[3] or "" for found in members}
    texts = _texts(piece)
    return texts[0] if texts is not None and len(texts) == 1 else None


def _list(inner: str) -> list[Any] | None:
    if not inner:
        return []
    texts = _texts(inner)
    if texts is not None:
        return texts
    pairs = _sequence(_PAIR, inner)
    return None if pairs is None else [[found[1] or found[2] or "", int(found[4])] for found in pairs]


def _texts(inner: str) -> list[str] | None:
    """Values that follow each other with the same space between: as many tags as they need and no more."""
    for opening, closing, tags in (("<value><string>", "</string></value>", 4), ("<value>", "</value>", 2)):
        if inner.startswith(opening) and inner.endswith(closing):
            content = inner[len(opening) : -len(closing)]
            for space in ("", "\n"):
                texts = content.split(f"{closing}{space}{opening}")
                if inner.count("<") == tags * len(texts):
                    return texts
    return None


def _sequence(pattern: re.Pattern[str], text: str) -> list[re.Match[str]] | None:
    """The text as matches that follow each other without a gap."""
    found = list(pattern.finditer(text))
    position = 0
    for match in found:
        if match.start() != position:
            return None
        position = match.end()
    return found if position == len(text) else None
