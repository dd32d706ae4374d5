"""Logs: a message is one line; the same is said once, until it changes or is over; acts are lines of JSON."""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from types import TracebackType
from typing import Any

import msgspec

from ovirt_service.errors import UserError
from ovirt_service.text import one_line

_Caught = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

#: There may be any number of subjects: of more than these the oldest are forgotten.
_MOST_SUBJECTS = 10_000


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


def log_to_stderr(form: str = "%(levelname)s %(name)s: %(message)s") -> None:
    """Log from INFO on, in this form, unless a log is set up already."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(form))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class Said:
    """Remembers what was said of which subject, for all threads."""

    def __init__(self, quiet_seconds: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        """The same is said again after the quiet time; without one, only when it was over."""
        self._quiet_seconds = quiet_seconds
        self._clock = clock
        self._lock = threading.Lock()
        #: The words and the moment for each subject, the oldest first.
        self._said: dict[Hashable, tuple[str, float]] = {}

    def is_news(self, subject: Hashable, words: str = "") -> bool:
        """Whether this is to be said now; if so, it counts as said."""
        now = self._clock()
        with self._lock:
            before, at = self._said.get(subject, (None, -math.inf))
            if words == before and now - at < self._quiet_seconds:
                return False
            self._said.pop(subject, None)
            self._forget(now)
            self._said[subject] = (words, now)
            return True

    def is_over(self, subject: Hashable) -> bool:
        """Whether something was said of it, which holds no more: from now on it is news again."""
        with self._lock:
            return self._said.pop(subject, None) is not None

    def _forget(self, now: float) -> None:
        """Drop what may be said again anyway, and more where that is not enough."""
        while self._said:
            subject, (_, at) = next(iter(self._said.items()))
            if now - at < self._quiet_seconds and len(self._said) < _MOST_SUBJECTS:
                return
            del self._said[subject]


class Few:
    """Lets few lines of a kind be said in a while, and counts the others: their cause may last."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        #: When lines were said, and how many were not since.
        self._said: dict[Hashable, tuple[deque[float], int]] = {}

    def left_out(self, kind: Hashable) -> int | None:
        """How many of this kind were left out before this one; None if this one is as well."""
        said, others = self._said.get(kind) or (deque[float](maxlen=self._most), 0)
        now = self._clock()
        if len(said) == self._most and now - said[0] < self._seconds:
            self._said[kind] = said, others + 1
            return None
        said.append(now)
        self._said[kind] = said, 0
        if len(self._said) > _MOST_SUBJECTS:
            del self._said[next(iter(self._said))]
        return others


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


class AuditLog:
    """The lines of one program, in the file that its configuration names."""

    def __init__(self, name: str, setting: str, *, in_log: bool) -> None:
        """`name` is that of its logger; with `in_log` its lines stand in the program's log as well."""
        self._setting = setting
        self._log = logging.getLogger(name)
        self._log.propagate = in_log

    def open(self, path: str) -> None:
        """Append to this file from now on; an empty path leaves the file unwritten.

        A file that is moved away, as logrotate does, is made again. Raises `UserError` if it cannot be
        written.
        """
        for handler in tuple(self._log.handlers):
            self._log.removeHandler(handler)
            handler.close()
        if not path:
            return
        try:
            handler = WatchedFileHandler(path, encoding="utf-8")
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
