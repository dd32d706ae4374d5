"""Audit logs: each act or decision as one line of JSON, for programs that keep or search it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from typing import Any

import msgspec

from ovirt_service.errors import UserError


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
