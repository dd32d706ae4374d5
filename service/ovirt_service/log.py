"""Logs: a message is one line; a complaint is one until it is over; acts are lines of JSON."""

import logging
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from types import TracebackType
from typing import Any

import msgspec

from ovirt_service.errors import UserError
from ovirt_service.repetition import Said
from ovirt_service.text import one_line

_Caught = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


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


def log_to_stderr() -> None:
    """Log from INFO on, unless a log is set up already."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter("%(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class Complaint:
    """Logs once that something is wrong, however often its reason changes, and once that it is over."""

    def __init__(self, log: logging.Logger, wrong: str, over: str) -> None:
        self._log = log
        self._wrong = wrong
        self._over = over
        self._said = Said()

    def say(self, error: str) -> None:
        """Take note of an error, or with an empty one that there is none."""
        if error and self._said.is_news(self._wrong):
            self._log.warning("%s: %s", self._wrong, error)
        elif not error and self._said.is_over(self._wrong):
            self._log.warning("%s", self._over)


class _Lines(WatchedFileHandler):
    """The lines of a file; one that cannot be written is a complaint, and what is logged there goes on."""

    def __init__(self, path: str, setting: str) -> None:
        super().__init__(path, encoding="utf-8")
        self._complaint = Complaint(
            logging.getLogger(__name__), f"{setting}: cannot be written", f"{setting}: is written again"
        )

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError as error:
            self._complaint.say(f"{self.baseFilename}: {error.strerror}; lines are missing there")
        else:
            self._complaint.say("")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        if isinstance(error := sys.exception(), OSError):
            raise error
        super().handleError(record)


class AuditLog:
    """The lines of one program, in the file that its configuration names."""

    def __init__(self, name: str, setting: str, *, in_log: bool) -> None:
        """`name` is that of its logger; with `in_log` its lines stand in the program's log as well."""
        self._setting = setting
        self._log = logging.getLogger(name)
        self._log.propagate = in_log

    def open(self, path: str) -> None:
        """Append to this file from now on; an empty path leaves the file unwritten.

        A file that is moved away, as logrotate does, is made again; where that fails, or no room is left,
        the program goes on without its lines. Raises `UserError` if it cannot be
        written.
        """
        for handler in tuple(self._log.handlers):
            self._log.removeHandler(handler)
            handler.close()
        if not path:
            return
        try:
            handler = _Lines(path, self._setting)
        except OSError as error:
            raise UserError(f"{self._setting}: {path}: {error.strerror}") from None
        handler.setFormatter(logging.Formatter("%(message)s"))
        self._log.addHandler(handler)
        self._log.setLevel(logging.INFO)

    def write(self, facts: Mapping[str, Any]) -> None:
        """Write a line of these facts, with the time before them."""
        if self._log.handlers or self._log.propagate:
            moment = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
            self._log.info("%s", msgspec.json.encode({"time": moment, **facts}).decode())
