"""Brings text that a plugin or a caller chose into a form that a log, a terminal and JSON can hold."""

from __future__ import annotations

import re

#: A sentence about a failure is cut to this many characters.
SENTENCE = 300

# Controls, line separators, marks that nobody sees or that turn the direction of writing, and halves of
# characters. What joins or spaces characters stays: descriptions in some languages need it.
_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f"
)
_IN_LINES = re.compile(f"[{_UNSAFE}]")
_IN_LINE = re.compile(f"[\t\n{_UNSAFE}]")


def one_line(text: str, longest: int = SENTENCE) -> str:
    """The text as one line: what is white becomes a space, what cannot be seen is written out."""
    reported = escaped(" ".join(text[: 8 * longest].split()))
    return reported if len(reported) <= longest else f"{reported[: longest - 3]}..."


def escaped(text: str) -> str:
    """The text in one line, with nothing lost: a line break is written out too."""
    return text if text.isprintable() else _IN_LINE.sub(_written_out, text)


def lines(text: str) -> str:
    """The text with its lines and tabs, and all else that cannot be seen written out."""
    return text if text.isprintable() else _IN_LINES.sub(_written_out, text)


def reported(error: BaseException) -> str:
    """An exception in one line: its kind, and its text where it has one."""
    kind, text = one_line(type(error).__name__), text_of(error)
    return f"{kind}: {text}" if text else kind


def text_of(error: BaseException) -> str:
    """The text of an exception in one line; empty where it has none, or none to give."""
    try:
        return one_line(str(error))
    except BaseException:  # whatever a plugin makes of `__str__`
        return ""


def _written_out(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
