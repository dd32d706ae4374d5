"""Sets up the log: to stderr, to the journal with its levels, or to a file that is rotated."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from logging.handlers import RotatingFileHandler

from ovirt_service.errors import UserError
from ovirt_service.log_lines import LineFormatter

from ..settings import Log
from ..worker.text import escaped

#: Seconds between two batches.
_INTERVAL = 0.1

#: Characters that may wait to be written; and the seconds that the last ones may take, once we are to end.
_MOST_WAITING = 4 << 20
_LAST_SECONDS = 1.0

# syslog's severities, which the journal reads from the start of a line.
_SEVERITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


class _JournalFormatter(LineFormatter):
    """The journal adds the time itself and takes every line for a message of its own."""

    def format(self, record: logging.LogRecord) -> str:
        severity = _SEVERITIES.get(record.levelno, 6)
        return "\n".join(f"<{severity}>{line}" for line in super().format(record).split("\n"))


class BatchedHandler(logging.Handler):
    """Hands lines on in batches, from a thread: a slow disk or reader delays neither a call nor the end."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self._write = write
        self._lines: deque[str] = deque()
        self._waiting = 0
        self._lost = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:
            self.handleError(record)
            return
        if self._waiting + len(line) > _MOST_WAITING:
            self._lost += 1
        else:
            self._waiting += len(line)
            self._lines.append(line)

    def close(self) -> None:
        """Write what is left, for as long as that goes on quickly."""
        if not self._closing.is_set():
            self._closing.set()
            self._thread.join(_LAST_SECONDS)
        super().close()

    def _run(self) -> None:
        while not self._closing.wait(_INTERVAL):
            self._write_batch()
        self._write_batch()

    def _write_batch(self) -> None:
        # No lock is taken: the closer of the handler may hold it while waiting for this thread.
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        lost, self._lost = self._lost, 0
        if lost:
            reported = f"{lost} messages were lost here: nobody takes them fast enough"
            lines.append(
                self.format(
                    logging.makeLogRecord(
                        {"msg": reported, "levelno": logging.WARNING, "levelname": "WARNING"}
                    )
                )
            )
        if lines:
            self._write("\n".join(lines))
            self._waiting -= sum(map(len, lines[: len(lines) - bool(lost)]))


def set_up(settings: Log) -> BatchedHandler:
    """Send what is logged where the settings say. Raises `UserError` if the file cannot be opened."""
    handler = (
        open_rotated(settings.file, settings.file_mib, settings.files)
        if settings.file
        else BatchedHandler(_write_to_stderr)
    )
    to_journal = not settings.file and _stderr_is_journal()
    plain = LineFormatter("%(asctime)s %(levelname)s %(message)s", escaped)
    handler.setFormatter(_JournalFormatter("%(message)s", escaped) if to_journal else plain)
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)
    # The formats above use none of these, and finding them out takes half the time of a record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    return handler


def open_rotated(file: str, mib: int, files: int) -> BatchedHandler:
    """A file that makes way for a new one when it is full. Raises `UserError`."""
    try:
        target = RotatingFileHandler(
            file, maxBytes=mib << 20, backupCount=files, encoding="utf-8", errors="replace"
        )
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}") from error
    return BatchedHandler(lambda text: target.emit(logging.makeLogRecord({"msg": text})))


def _write_to_stderr(text: str) -> None:
    """Past Python's own stream, whose lock would keep the process from ending while nobody reads."""
    left = memoryview(f"{text}\n".encode("utf-8", "backslashreplace"))
    with contextlib.suppress(OSError):  # nobody can be notified of an error here
        while left:
            left = left[os.write(2, left) :]


def _stderr_is_journal() -> bool:
    """Whether systemd has connected stderr to the journal: it says so by device and inode."""
    stream = os.environ.get("JOURNAL_STREAM", "")
    try:
        status = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return False
    return stream == f"{status.st_dev}:{status.st_ino}"
