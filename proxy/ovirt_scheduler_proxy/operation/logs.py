"""Sets up the log: to stderr, to the journal with its levels, or to a file that is rotated."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import deque
from logging.handlers import RotatingFileHandler

from ovirt_service.errors import UserError

from ..settings import Log

#: Seconds between two batches.
_INTERVAL = 0.1

# syslog's severities, which the journal reads from the start of a line.
_SEVERITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


class _JournalFormatter(logging.Formatter):
    """The journal adds the time itself and takes every line for a message of its own."""

    def format(self, record: logging.LogRecord) -> str:
        severity = _SEVERITIES.get(record.levelno, 6)
        return "\n".join(f"<{severity}>{line}" for line in super().format(record).splitlines())


class BatchedHandler(logging.Handler):
    """Hands records on in batches, from a thread: a slow disk must not delay a call."""

    def __init__(self, target: logging.Handler) -> None:
        super().__init__()
        self._target = target
        self._lines: deque[str] = deque()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.append(self.format(record))
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Write what is left, and close the other handler."""
        if not self._closing.is_set():
            self._closing.set()
            self._thread.join()
            self._target.close()
        super().close()

    def _write(self) -> None:
        while not self._closing.wait(_INTERVAL):
            self._write_batch()
        self._write_batch()

    def _write_batch(self) -> None:
        # No lock is taken: whoever closes the handler may hold it while waiting for this thread.
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        if lines:
            self._target.handle(logging.makeLogRecord({"msg": "\n".join(lines), "levelno": logging.INFO}))


def set_up(settings: Log) -> BatchedHandler:
    """Send what is logged where the settings say. Raises `UserError` if the file cannot be opened."""
    plain = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    if settings.file:
        handler = open_rotated(settings.file, settings.file_mib, settings.files)
        handler.setFormatter(plain)
    else:
        handler = BatchedHandler(logging.StreamHandler())
        handler.setFormatter(_JournalFormatter("%(message)s") if _stderr_is_journal() else plain)
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)
    # The formats above use none of these, and finding them out takes half the time of a record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    return handler


def open_rotated(file: str, mib: int, files: int) -> BatchedHandler:
    """A file that makes way for a new one when it is full. Raises `UserError`."""
    try:
        return BatchedHandler(
            RotatingFileHandler(
                file, maxBytes=mib << 20, backupCount=files, encoding="utf-8", errors="replace"
            )
        )
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}") from error


def _stderr_is_journal() -> bool:
    """Whether systemd has connected stderr to the journal: it says so by device and inode."""
    stream = os.environ.get("JOURNAL_STREAM", "")
    try:
        status = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return False
    return stream == f"{status.st_dev}:{status.st_ino}"
