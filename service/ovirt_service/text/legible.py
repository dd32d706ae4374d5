"""Makes what others have named safe to be shown: it can neither steer a terminal nor pass for a line of ours.

What comes from outside has no line breaks from the moment it is read (`unbroken`), and whatever a command
prints goes through `legible`, which shows the rest of what is not to be seen by its code. Logs have one line
a message.
"""

from __future__ import annotations

import logging
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Final, TextIO, cast

_Caught = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

#: Control and format characters, surrogates, separators of lines: they would change what a terminal shows.
_UNSHOWN: Final = {"Cc", "Cf", "Cs", "Zl", "Zp"}
#: All that anything takes for the end of a line.
_BREAKS: Final = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
#: The styles of our own tables on a terminal; what stands in their cells is shown before.
_STYLES: Final = re.compile(r"(\x1b\[(?:0|1|3[1-3])m)")


def code_of(character: str) -> str:
    r"""A character as Python writes it in a text: `\x1b`."""
    return character.encode("unicode_escape").decode()


def unbroken(text: str) -> str:
    """The text on one line: the ends of lines in it are shown by their codes."""
    return text if text.isprintable() else _BREAKS.sub(lambda found: code_of(found[0]), text)


def escaped(text: str) -> str:
    r"""A text that only takes the room of its characters: what would steer a terminal is shown by its code.

    Its lines stay. The codes are those of JSON, as `\u009b`: JSON still says the same.
    """
    if text.isprintable():
        return text
    return "\n".join(line if line.isprintable() else _shown(line) for line in text.split("\n"))


def legible(stream: TextIO, *, styled: bool = False) -> TextIO:
    """A stream that writes everything as `escaped` into another; with the styles of our tables if wanted."""
    return cast("TextIO", _Legible(stream, styled=styled))


class _Legible:
    def __init__(self, stream: TextIO, *, styled: bool) -> None:
        self._stream = stream
        self._styled = styled

    def write(self, text: str) -> int:
        parts = _STYLES.split(text) if self._styled else [text]
        shown = (part if place % 2 else escaped(part) for place, part in enumerate(parts))
        self._stream.write("".join(shown))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _shown(line: str) -> str:
    return "".join(_json_code_of(one) if unicodedata.category(one) in _UNSHOWN else one for one in line)


def _json_code_of(character: str) -> str:
    """Beyond 16 bits as a pair of surrogates."""
    encoded = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{encoded[at : at + 2].hex()}" for at in range(0, len(encoded), 2))


def log_to_stderr(form: str = "%(levelname)s %(name)s: %(message)s") -> None:
    """Log from INFO on, in this form, unless a log is set up already."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(form))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def one_line(text: str) -> str:
    """The text, with all that is not visible written as its code."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else code_of(one) for one in text)


class LineFormatter(logging.Formatter):
    """One line for a message; the further lines of a traceback are indented, and so pass for no message."""

    def __init__(self, form: str, shown: Callable[[str], str] = one_line) -> None:
        """`shown` writes out what could break a line."""
        super().__init__(form)
        self._shown = shown

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging calls it so
        record.message = self._shown(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: _Caught) -> str:  # noqa: N802
        return "\n".join(f"    {self._shown(line)}" for line in super().formatException(ei).split("\n"))
