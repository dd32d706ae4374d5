"""The audit log: each decision and migration as one line of JSON, for programs that keep or search it."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from typing import Any, Final

import msgspec

from ovirt_service.errors import UserError

#: Its lines go to the file that the configuration names, and never into the log of the service.
_log: Final = logging.getLogger("ovirt_enforcer.audit")
_log.propagate = False


def open_log(path: str) -> None:
    """Append to this file from now on; an empty path leaves the lines unwritten.

    A file that is moved away, as logrotate does, is made again. Raises `UserError` if it cannot be written.
    """
    for handler in tuple(_log.handlers):
        _log.removeHandler(handler)
        handler.close()
    if not path:
        return
    try:
        handler = WatchedFileHandler(path, encoding="utf-8")
    except OSError as error:
        raise UserError(f"[enforcer] audit_log: {path}: {error.strerror}") from None
    handler.setFormatter(logging.Formatter("%(message)s"))
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)


def report(kind: str, sentence: str, **facts: Any) -> None:
    """Write a line: when, the kind of event, its facts (ids and names), and a sentence for people."""
    if not _log.handlers:
        return
    moment = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
    line = {"time": moment, "kind": kind, **facts, "sentence": sentence}
    _log.info("%s", msgspec.json.encode(line).decode())
