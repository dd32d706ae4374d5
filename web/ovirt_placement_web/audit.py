"""The audit log of the page: one line for each log-in and each act, refused ones included."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from typing import Final

import msgspec

from ovirt_placement.model.record import Record
from ovirt_service.errors import UserError

_log: Final = logging.getLogger("ovirt_placement_web.audit")


class Act(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Who did what, from where, to what, and what came of it."""

    who: str
    address: str
    act: str
    outcome: str
    on: str = ""
    #: The digest of the plan that was approved of.
    plan: str = ""
    correlation_id: str = ""


_engine: ContextVar[str] = ContextVar("engine", default="")


@contextmanager
def of_engine(name: str) -> Iterator[None]:
    """Whose lines name this engine; empty where the page shows one alone."""
    token = _engine.set(name)
    try:
        yield
    finally:
        _engine.reset(token)


def open_log(path: str) -> None:
    """Append to this file as well from now on; raises `UserError` if it cannot be written."""
    if not path:
        return
    try:
        handler = WatchedFileHandler(path, encoding="utf-8")
    except OSError as error:
        raise UserError(f"[web] audit_log: {path}: {error.strerror}") from None
    handler.setFormatter(logging.Formatter("%(message)s"))
    _log.addHandler(handler)


def note(act: Act) -> None:
    """Write a line of JSON."""
    moment = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
    engine = {"engine": name} if (name := _engine.get()) else {}
    said = {"time": moment, **engine, **msgspec.to_builtins(act)}
    _log.info("%s", msgspec.json.encode(said).decode())
