"""Brings text that a plugin or a caller chose into a form that a log, a terminal and JSON can hold."""

from __future__ import annotations

import re

#: A sentence about a failure is cut to this many characters.
SENTENCE = 300

# Controls, line separators, marks that turn the direction of writing, and halves of characters.
_UNSAFE = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff"
_IN_LINES = re.compile(f"[{_UNSAFE}]")
_IN_LINE = re.compile(f"[\t\n{_UNSAFE}]")


def one_line(text: str, longest: int = SENTENCE) -> str:
    """The text as one line: what is white becomes a space, what cannot be seen is written out."""
    told = escaped(" ".join(text[: 8 * longest].split()))
    return told if len(told) <= longest else f"{told[: longest - 3]}..."


def escaped(text: str) -> str:
    """The text in one line, with nothing lost: a line break is written out too."""
    return text if text.isprintable() else _IN_LINE.sub(_written_out, text)


def lines(text: str) -> str:
    """The text with its lines and tabs, and all else that cannot be seen written out."""
    return text if text.isprintable() else _IN_LINES.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
