"""Sets up the log: to stderr, to the journal with its levels, or to a file that is rotated."""

from __future__ import annotations

import logging
import os
import sys
from logging.handlers import RotatingFileHandler

from ..errors import UserError
from ..settings import Log

# syslog's severities, which the journal reads from the start of a line.
_SEVERITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


class _JournalFormatter(logging.Formatter):
    """The journal adds the time itself and takes every line for a message of its own."""

    def format(self, record: logging.LogRecord) -> str:
        severity = _SEVERITIES.get(record.levelno, 6)
        return "\n".join(f"<{severity}>{line}" for line in super().format(record).splitlines())


def set_up(settings: Log) -> None:
    """Send what is logged where the settings say. Raises `UserError` when the file cannot be opened."""
    handler: logging.Handler
    plain = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    if settings.file:
        handler = open_rotated(settings.file, settings.file_mib, settings.files)
        handler.setFormatter(plain)
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(_JournalFormatter("%(message)s") if _stderr_is_journal() else plain)
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)


def open_rotated(file: str, mib: int, files: int) -> RotatingFileHandler:
    """A file that makes way for a new one when it is full. Raises `UserError`."""
    try:
        return RotatingFileHandler(
            file, maxBytes=mib << 20, backupCount=files, encoding="utf-8", errors="replace"
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
