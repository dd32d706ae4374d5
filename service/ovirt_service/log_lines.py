"""Logs one line a message: what names and ids hold can neither forge a line nor steer a terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from types import TracebackType

from ovirt_service.legible import code_of

_Caught = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


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
